"""The picture of robustness: error over the strength of each disturbance."""

import pathlib
import textwrap

import matplotlib.pyplot as plt

from trainers.evaluate.robustness import DisturbedError
from trainers.pictures import COLORS, GREY, readable, save, style_for

# Characters that fit beside each other.
_TITLE_WIDTH = 90
_LEGEND_WIDTH = 40
_PANELS = (
    ("Rotation", "degrees, either way", ("rotation",)),
    ("Scale", "enlarged this many times", ("scale",)),
    ("Shift", "pixels, mean of four directions", ("shift",)),
    ("Adversary", "largest change of a pixel, 1/255", ("FGSM", "PGD")),
)


def robustness(
    measurements: dict[str, list[DisturbedError]], path: pathlib.Path
) -> None:
    """Draws the errors of one or several runs.

    Args:
        measurements: Per name of a run, what was measured.
        path: The PNG.
    """
    with plt.rc_context(style_for(measurements)):
        figure, axes = plt.subplots(
            2, 2, figsize=(9.5, 7), sharey=True, layout="constrained"
        )
        figure.get_layout_engine().set(h_pad=0.12, w_pad=0.12)
        for axis, (title, label, names) in zip(axes.flat, _PANELS, strict=True):
            for color, rows in zip(COLORS, measurements.values()):  # noqa: B905
                _draw_run(axis, rows, names, color)
            axis.set_title(title)
            axis.set_xlabel(label)
            axis.grid(True)
            axis.set_axisbelow(True)
            axis.set_ylim(0, 100)
        for axis in axes[:, 0]:
            axis.set_ylabel("error, %")
        _add_legends(figure, axes, list(measurements))
        save(figure, path)


def _draw_run(axis, rows, names, color):
    for name in names:
        points = [row for row in rows if row.disturbance == name]
        strengths = [point.strength for point in points]
        axis.plot(
            strengths, [100 * point.error for point in points], color=color,
            marker="o", markersize=4,
            linestyle=(0, (3, 2)) if name == "FGSM" else "-",
        )  # fmt: skip
        axis.fill_between(
            strengths,
            [100 * point.low for point in points],
            [100 * point.high for point in points],
            color=color, alpha=0.15, linewidth=0,
        )  # fmt: skip
        axis.set_xticks(strengths, [f"{strength:g}" for strength in strengths])


def _add_legends(figure, axes, runs):
    """Names the kinds of attack, and the runs if there are several."""
    kinds = [
        plt.Line2D([], [], color=GREY, linestyle=(0, (3, 2)), label="FGSM"),
        plt.Line2D([], [], color=GREY, label="PGD, 10 steps"),
    ]
    axes[1, 1].legend(handles=kinds, loc="best")
    if len(runs) == 1:
        title = f"Error of {readable(runs[0])} under disturbance"
    else:
        title = "Error under disturbance"
        lines = [
            plt.Line2D(
                [],
                [],
                color=color,
                marker="o",
                label=textwrap.fill(readable(run), _LEGEND_WIDTH),
            )
            for color, run in zip(COLORS, runs)  # noqa: B905
        ]
        axes[0, 0].legend(handles=lines, loc="best")
    figure.suptitle(
        textwrap.fill(f"{title} (shaded: 95% interval)", _TITLE_WIDTH),
        x=0.02, ha="left", fontsize=12, fontweight="bold",
    )  # fmt: skip
