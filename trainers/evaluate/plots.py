"""The pictures of an evaluation: confusion and mistakes."""

import pathlib
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import colors, ticker

from trainers.pictures import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    readable,
    save,
    style_for,
)

# With more classes names and numbers would overlap.
NAMED_CLASSES = 30
NUMBERED_CLASSES = 15
# Of the picture of mistakes.
COLUMNS = 4

ERRORS = colors.LinearSegmentedColormap.from_list(
    "errors", ["#ffffff", "#fde3cf", "#f5a873", ORANGE, "#8a3b00"]
)
HITS = colors.LinearSegmentedColormap.from_list(
    "hits", ["#ffffff", "#cfe5f3", "#8fc1e3"]
)


def confusion(
    matrix: np.ndarray, class_names: tuple[str, ...], path: pathlib.Path
) -> None:
    """Draws what is taken for what, and the most frequent confusions.

    Args:
        matrix: Counts `(M, M)`, rows true classes.
        class_names: M names.
        path: The PNG.
    """
    totals = np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    percent = 100 * matrix / totals
    with plt.rc_context(style_for(class_names)):
        figure, (heat, bars) = plt.subplots(
            1, 2, figsize=(11.5, 6.6), layout="constrained",
            width_ratios=(1.85, 1),
        )  # fmt: skip
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
        _draw_confusion(figure, heat, percent, class_names)
        _draw_most_confused(bars, matrix, percent, class_names)
        save(figure, path)


def _draw_confusion(figure, axis, percent, class_names):
    diagonal = np.eye(len(percent), dtype=bool)
    wrong = np.ma.masked_array(percent, diagonal)
    right = np.ma.masked_array(percent, ~diagonal)
    axis.imshow(right, cmap=HITS, vmin=0, vmax=100, interpolation="nearest")
    picture = axis.imshow(
        wrong, cmap=ERRORS, vmin=0, vmax=max(1.0, float(wrong.max() or 0)),
        interpolation="nearest",
    )  # fmt: skip
    if wrong.max():
        bar = figure.colorbar(
            picture, ax=axis, shrink=0.75, pad=0.02, aspect=30
        )
        bar.set_label("errors, % of the true class")
        bar.outline.set_visible(False)
    axis.set_title("What is taken for what, % of the true class")
    name_classes(axis, class_names, "predicted class", "true class")
    if len(percent) <= NUMBERED_CLASSES:
        _write_numbers(axis, percent, picture.norm, diagonal)


def _write_numbers(axis, values, norm, diagonal):
    size = 9 if len(values) <= 10 else 7
    for (row, column), value in np.ndenumerate(values):
        if not value:
            continue
        on_diagonal = diagonal[row, column]
        dark = not on_diagonal and norm(value) > 0.55
        axis.text(
            column, row, f"{value:.1f}",
            ha="center", va="center", fontsize=size,
            color="white" if dark else INK,
            fontweight="bold" if on_diagonal else "normal",
        )  # fmt: skip


def name_classes(axis, class_names, x_label, y_label):
    """Names the classes on both axes, or only says how many there are."""
    axis.spines[:].set(visible=True, color="#d1d5db")
    axis.tick_params(length=0)
    count = len(class_names)
    if count > NAMED_CLASSES:
        axis.set_xticks([])
        axis.set_yticks([])
        axis.set_xlabel(f"{x_label} ({count} in order)")
        axis.set_ylabel(f"{y_label} ({count} in order)")
        return
    long = max(len(name) for name in class_names) > 3
    short = [_cut(name, 14) for name in class_names]
    axis.set_xticks(range(count), short, rotation=90 if long else 0)
    axis.set_yticks(range(count), short)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)


def _cut(name, length):
    cut = name if len(name) <= length else name[: length - 1] + "…"
    return readable(cut)


def _cut_front(name, length):
    """File names differ at their ends."""
    cut = name if len(name) <= length else "…" + name[1 - length :]
    return readable(cut)


def _draw_most_confused(axis, matrix, percent, class_names, count=12):
    wrong = matrix * (1 - np.eye(len(matrix), dtype=matrix.dtype))
    order = np.argsort(-wrong, axis=None, kind="stable")[:count]
    pairs = [np.unravel_index(place, wrong.shape) for place in order]
    pairs = [pair for pair in pairs if wrong[pair]]
    axis.set_title("Most frequent confusions")
    if not pairs:
        axis.text(0.5, 0.5, "none", ha="center", color=GREY)
        axis.axis("off")
        return
    axis.barh(
        range(len(pairs)), [wrong[pair] for pair in pairs], color=ORANGE,
        height=0.62,
    )  # fmt: skip
    names = [
        f"{_cut(class_names[true], 16)} → {_cut(class_names[other], 16)}"
        for true, other in pairs
    ]
    axis.set_yticks(range(len(pairs)), names)
    axis.set_ylim(count - 0.4, -0.6)
    for place, pair in enumerate(pairs):
        axis.text(
            wrong[pair], place, f" {percent[pair]:.1f}%", va="center",
            fontsize=9, color=GREY,
        )  # fmt: skip
    axis.set_xlim(0, 1.2 * max(wrong[pair] for pair in pairs))
    axis.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    axis.set_xlabel("images (and % of the true class)")
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)


class Shown(NamedTuple):
    """One image of the picture of mistakes.

    Attributes:
        name: What it is called.
        true: Its class.
        true_score: The score of that.
        predicted: What it is taken for.
        score: The score of that.
    """

    name: str
    true: str
    true_score: float
    predicted: str
    score: float


def mistakes(
    images: np.ndarray, captions: list[Shown], path: pathlib.Path
) -> None:
    """Draws the worst mistakes, or the least certain right answers.

    Args:
        images: Images in [0, 1] `(N, H, W, C)`, one or more.
        captions: What to say of each.
        path: The PNG.
    """
    rows = -(-len(images) // COLUMNS)
    words = [w for s in captions for w in (s.name, s.true, s.predicted)]
    with plt.rc_context(style_for(words)):
        figure, axes = plt.subplots(
            rows, COLUMNS, figsize=(9.2, 0.4 + 3.1 * rows), squeeze=False,
            layout="constrained",
        )  # fmt: skip
        figure.get_layout_engine().set(h_pad=0.12, w_pad=0.08)
        figure.suptitle(
            _mistakes_title(captions), x=0.01, ha="left", fontsize=11,
            fontweight="bold",
        )  # fmt: skip
        for axis in axes.flat:
            axis.axis("off")
        for axis, image, caption in zip(axes.flat, images, captions):  # noqa: B905
            _draw_mistake(axis, image, caption)
        save(figure, path)


def _mistakes_title(captions):
    if any(shown.true != shown.predicted for shown in captions):
        what = "The worst mistakes"
    else:
        what = "No mistakes; the least certain answers"
    return f"{what}: true class and score in blue, predicted in orange"


def _draw_mistake(axis, image, shown):
    gray = image.shape[-1] == 1
    axis.imshow(
        image[..., 0] if gray else image, cmap="gray", vmin=0, vmax=1,
        interpolation="nearest",
    )  # fmt: skip
    lines = [(f"{_cut(shown.true, 15)}  {shown.true_score:.2f}", BLUE)]
    if shown.predicted != shown.true:
        other = f"{_cut(shown.predicted, 15)}  {shown.score:.2f}"
        lines.insert(0, (other, ORANGE))
    for line, (text, color) in enumerate(lines):
        axis.annotate(
            text, (0, 1), xycoords="axes fraction", textcoords="offset points",
            xytext=(0, 5 + 14 * line), color=color, fontweight="bold",
            annotation_clip=False,
        )  # fmt: skip
    axis.annotate(
        _cut_front(shown.name, 30), (0, 0), xycoords="axes fraction",
        textcoords="offset points", xytext=(0, -11), color=GREY, fontsize=8,
        annotation_clip=False,
    )  # fmt: skip
