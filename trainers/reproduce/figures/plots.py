"""The pictures of a reproduction: errors, curves, figure 2 and figure 4."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib import ticker

from trainers.pictures import BLUE, COLORS, GREY, ORANGE, STYLE, save
from trainers.reproduce.experiments import DATA_NAMES
from trainers.reproduce.figures.routing_dynamics import NUM_BINS
from trainers.reproduce.outcomes import RowOutcome
from trainers.reproduce.rows import Row

_BAR = "#c4c9d1"
# The largest error over the smallest that a linear axis can show.
_CRUSHED = 20


def errors(
    outcomes: Sequence[RowOutcome], data: str, path: pathlib.Path
) -> None:
    """Draws each row's error, its spread over the seeds, and the paper's."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(
            figsize=(8.2, 1.4 + 0.42 * len(outcomes)), layout="constrained"
        )
        places = np.arange(len(outcomes))
        _draw_paper(axis, outcomes, data)
        for place, outcome in enumerate(outcomes):
            _draw_ours(axis, place, outcome)
        axis.set_yticks(
            places, [f"{o.row.label}  ({o.row.name})" for o in outcomes]
        )
        axis.invert_yaxis()
        axis.set_ylim(len(outcomes) - 0.4, -0.6)
        _scale(axis, outcomes)
        axis.set_xlabel("test error, %")
        axis.grid(True, axis="x")
        axis.grid(True, axis="y", linestyle=":")
        axis.set_axisbelow(True)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        figure.legend(loc="outside upper center", ncols=2)
        save(figure, path)


def curve(
    outcomes: Sequence[RowOutcome], axis_label: str, path: pathlib.Path
) -> None:
    """Draws the errors of rows that are points of curves.

    Args:
        outcomes: Rows with an error.
        axis_label: What the places on the axis are.
        path: Where the picture goes.
    """
    series: dict[str, list[RowOutcome]] = {}
    for outcome in outcomes:
        series.setdefault(outcome.row.point[0], []).append(outcome)
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        for (name, found), color in zip(series.items(), COLORS, strict=False):
            axis.errorbar(
                [o.row.point[1] for o in found],
                [100 * o.error for o in found],
                yerr=[100 * (o.spread or 0) for o in found],
                fmt="o-", color=color, markersize=5, capsize=3, label=name,
            )  # fmt: skip
        places = sorted({o.row.point[1] for o in outcomes})
        axis.set_xscale("log")
        axis.set_xticks(places, [f"{place:,}" for place in places])
        axis.xaxis.set_minor_locator(ticker.NullLocator())
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 5)))
        axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.yaxis.set_minor_locator(ticker.NullLocator())
        axis.set_xlabel(axis_label)
        axis.set_ylabel("test error, %")
        axis.grid(True)
        axis.legend()
        save(figure, path)


def _scale(axis, outcomes):
    """Starts the axis at 0, or makes it logarithmic for very unlike errors."""
    means = [o.error for o in outcomes if o.error]
    if not means or max(means) < _CRUSHED * min(means):
        axis.set_xlim(left=0)
        return
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())


def _draw_ours(axis, place, outcome):
    several = ": mean ± standard deviation, and every seed"
    label = "ours" + several * (outcome.spread is not None)
    label = label if place == 0 else None
    if outcome.error is None:
        axis.text(
            0.01, place, outcome.status, va="center", color=GREY, fontsize=9,
            transform=axis.get_yaxis_transform(),
        )  # fmt: skip
        # So that a first row without error has its legend as well.
        axis.plot([], [], "o", color=BLUE, label=label)
        return
    axis.errorbar(
        100 * outcome.error, place, xerr=100 * (outcome.spread or 0) or None,
        fmt="o", color=BLUE, markersize=8, zorder=4, label=label,
        clip_on=False,
    )  # fmt: skip
    seeds = [100 * error for error in outcome.errors.values()]
    axis.plot(
        seeds, [place] * len(seeds), "|", color=BLUE, markersize=11, zorder=3
    )


def _draw_paper(axis, outcomes, data):
    known = [
        (outcome.row.paper[data], place)
        for place, outcome in enumerate(outcomes)
        if data in outcome.row.paper
    ]
    if known:
        axis.plot(
            *zip(*known, strict=True), "D", color=ORANGE, markersize=7,
            markerfacecolor="white", markeredgewidth=1.8, zorder=3,
            label=f"the paper, {DATA_NAMES[data]}, 600 epochs",
        )  # fmt: skip


def routing(
    snapshots: dict[str, list[dict[str, Any]]], path: pathlib.Path
) -> None:
    """Draws figure 2: votes by how much they agree, epoch by epoch.

    Args:
        snapshots: Per row, by its label, what `RoutingDynamics` wrote.
        path: Where the picture goes.
    """
    shown = {label: found for label, found in snapshots.items() if found}
    if not shown:
        return
    columns = max(map(len, shown.values()))
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            len(shown),
            columns,
            figsize=(3.1 * columns + 0.6, 2.9 * len(shown)),
            layout="constrained",
            squeeze=False,
        )
        for axes, (label, found) in zip(grid, shown.items(), strict=True):
            top = max(max(s["percent"]) for s in found)
            longest = max(n for s in found for n in s["lengths"] if n)
            for place, axis in enumerate(axes):
                if place >= len(found):
                    axis.set_visible(False)
                    continue
                title = f"{label}, epoch {found[place]['epoch']}"
                twin = _votes(axis, found[place], title, top, longest)
                if place == 0:
                    axis.set_ylabel("votes, %", color=GREY)
                if place == len(found) - 1:
                    twin.set_ylabel("mean length of a vote", color=BLUE)
        save(figure, path)


def _votes(axis, snapshot, title, top, longest):
    edges = np.linspace(-1, 1, NUM_BINS + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    axis.bar(centres, snapshot["percent"], 0.9 * (2 / NUM_BINS), color=_BAR)
    axis.set_title(title, fontsize=9)
    axis.set_xlabel("cos(v, vote)")
    axis.set_ylim(0, 1.08 * top)
    axis.set_xticks([-1, -0.5, 0, 0.5, 1])
    twin = axis.twinx()
    lengths = [np.nan if n is None else n for n in snapshot["lengths"]]
    twin.plot(centres, lengths, ".-", color=BLUE, linewidth=1.4)
    twin.set_ylim(0, 1.08 * longest)
    twin.tick_params(axis="y", labelcolor=BLUE, labelsize=8)
    axis.tick_params(labelsize=8)
    return twin


def losses(
    histories: Sequence[tuple[Row, list[list[dict[str, float]]]]],
    path: pathlib.Path,
) -> None:
    """Draws figure 4: training loss with and without agreement.

    Args:
        histories: Rows, each with the lines of `metrics.csv` of every seed.
        path: Where the picture goes.
    """
    networks: dict[str, list] = {}
    for row, found in histories:
        networks.setdefault(row.fields["variant"], []).append((row, found))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, len(networks), figsize=(4.9 * len(networks), 3.9),
            layout="constrained", squeeze=False,
        )  # fmt: skip
        for axis, (variant, rows) in zip(
            axes[0], networks.items(), strict=True
        ):
            for row, found in rows:
                _loss_lines(axis, row, found)
            axis.set_title(variant)
            axis.set_xlabel("epoch")
            axis.xaxis.set_major_locator(ticker.MaxNLocator(8, integer=True))
            axis.set_ylim(bottom=0)
            axis.grid(True)
            axis.legend()
        axes[0][0].set_ylabel("training loss")
        save(figure, path)


def _loss_lines(axis, row, histories):
    """The mean over the seeds; with agreement also the class loss alone."""
    epochs = [entry["epoch"] for entry in histories[0]]
    marker = "o" if len(epochs) == 1 else None

    def draw(name, label, **style):
        values = np.mean([[e[name] for e in h] for h in histories], axis=0)
        axis.plot(epochs, values, marker=marker, label=label, **style)

    if row.fields["override"]["agreement"] == "none":
        draw("loss", "without agreement", color=GREY)
        return
    draw("loss", "with OT", color=BLUE)
    draw("class_loss", "with OT, class loss alone", color=BLUE,
         linestyle=(0, (4, 3)))  # fmt: skip
