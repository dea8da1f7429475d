"""The picture of the class capsules: their lengths and their entries."""

import pathlib

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import colors, ticker

from trainers.evaluate.capsules import CapsuleStatistics
from trainers.evaluate.plots import ERRORS, NUMBERED_CLASSES, name_classes
from trainers.pictures import INK, save, style_for

LENGTHS = colors.LinearSegmentedColormap.from_list(
    "lengths", ["#ffffff", "#cfe5f3", "#6baed6", "#0072b2", "#08306b"]
)


def capsules(
    statistics: CapsuleStatistics,
    class_names: tuple[str, ...],
    path: pathlib.Path,
) -> None:
    """Draws which capsules are long, and which of their entries matter."""
    with plt.rc_context(style_for(class_names)):
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(13, 6.4), layout="constrained"
        )
        figure.get_layout_engine().set(w_pad=0.15, h_pad=0.1)
        _draw_lengths(figure, left, statistics.lengths, class_names)
        _draw_effects(figure, right, statistics.effects, class_names)
        save(figure, path)


def _draw_lengths(figure, axis, lengths, class_names):
    highest = float(np.nanmax(lengths))
    shown = _heat(figure, axis, lengths, LENGTHS, highest, "mean length")
    axis.set_title("How long each capsule is, by true class")
    name_classes(axis, class_names, "capsule", "true class")
    axis.set_xlabel(
        f"{axis.get_xlabel()}\n"
        "The longest capsule names the class: best dark on the diagonal only."
    )
    if len(lengths) > NUMBERED_CLASSES:
        return
    for (row, column), value in np.ndenumerate(lengths):
        if np.isfinite(value):
            axis.text(
                column, row, f"{value:.2f}", ha="center", va="center",
                fontsize=9, color="white" if shown.norm(value) > 0.6 else INK,
            )  # fmt: skip


def _draw_effects(figure, axis, effects, class_names):
    falls = np.maximum(-effects, 0)
    highest = max(float(np.nanmax(falls)), 1e-6)
    _heat(figure, axis, falls, ERRORS, highest, "mean fall of the score")
    axis.set_title("What the score loses without one entry of the winner")
    name_classes(axis, class_names, "", "winning capsule")
    dim = effects.shape[1]
    axis.set_xticks(range(0, dim, -(-dim // 16)))
    axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%d"))
    axis.set_xlabel(
        "entry of the winning capsule that is set to zero\n"
        "Dark: the class is written in this entry; white: it plays no part."
    )


def _heat(figure, axis, values, cmap, highest, label):
    shown = axis.imshow(
        values, cmap=cmap, vmin=0, vmax=highest, aspect="auto",
        interpolation="nearest",
    )  # fmt: skip
    bar = figure.colorbar(shown, ax=axis, shrink=0.8, pad=0.02, aspect=30)
    bar.set_label(label)
    bar.outline.set_visible(False)
    return shown
