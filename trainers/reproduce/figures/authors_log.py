"""Our training error, epoch by epoch, beside the authors' own logs."""

import pathlib
from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib import ticker

from trainers.pictures import BLUE, GREY, ORANGE, STYLE, save
from trainers.reproduce.rows import Row
from trainers.tables import markdown

# Rows that were run, each with the lines of `metrics.csv` of every seed.
Histories = Sequence[tuple[Row, list[list[dict[str, float]]]]]


def about_log(histories: Histories) -> str:
    """Sets our training errors beside the authors', row by row."""
    logged = [(row, _errors(found)) for row, found in histories]
    if not logged:
        return ""
    heads = ["after epoch"]
    for row, _ in logged:
        heads += [f"ours, {row.label}", "theirs", "difference"]
    epochs = max(len(_both(row, ours)) for row, ours in logged)
    lines = [heads]
    for place in range(epochs):
        cells = [str(place + 1)]
        for row, ours in logged:
            cells += _cells(_both(row, ours)[place : place + 1])
        lines.append(cells)
    gaps = [abs(o - t) for row, ours in logged for o, t in _both(row, ours)]
    return (
        "## Training error beside the authors' logs\n\n"
        f"{markdown(lines, '>' * len(heads))}\n\n"
        "In percent, over the epoch, on augmented images; the largest "
        f"difference is {max(gaps):.1f} points. An epoch of theirs has 50,000 "
        "images: with fewer in ours the lines do not compare."
    )


def _errors(found):
    """Training error of each epoch in percent, the mean over the seeds."""
    return 100 * np.mean([[e["error"] for e in h] for h in found], axis=0)


def _both(row, ours):
    """Pairs of our error and theirs, of the epochs that both have."""
    return list(zip(ours, row.log, strict=False))


def _cells(pair):
    if not pair:
        return ["–"] * 3
    ((ours, theirs),) = pair
    return [f"{ours:.2f}", f"{theirs:.2f}", f"{ours - theirs:+.2f}"]


def draw(histories: Histories, path: pathlib.Path) -> None:
    """Draws our training error as lines, the authors' as diamonds."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
        for (row, found), color in zip(histories, (GREY, BLUE), strict=False):
            ours = _errors(found)
            epochs = np.arange(1, len(ours) + 1)
            axis.plot(
                epochs, ours, "o-", markersize=4, color=color,
                label=f"ours, {row.label}",
            )  # fmt: skip
            theirs = row.log[: len(ours)]
            axis.plot(
                epochs[: len(theirs)], theirs, "D", markersize=7,
                markerfacecolor="none", markeredgewidth=1.8, color=ORANGE,
                label="the authors' logs" if row is histories[0][0] else None,
            )  # fmt: skip
        axis.set_title("Training error after each epoch, %")
        axis.set_xlabel("epoch")
        axis.xaxis.set_major_locator(ticker.MaxNLocator(10, integer=True))
        axis.set_ylim(bottom=0)
        axis.grid(True)
        axis.set_axisbelow(True)
        axis.legend()
        save(figure, path)
