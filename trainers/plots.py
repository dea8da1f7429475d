"""The pictures of a run."""

import pathlib
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from trainers.run_folder import written_atomically  # noqa: E402

BLUE, ORANGE, GREEN, GREY = "#2b6cb0", "#dd6b20", "#2f855a", "#718096"


def curves(history: list[dict[str, Any]], path: pathlib.Path) -> None:
    """Draws loss, error, agreement loss and learning rate over the epochs."""
    epochs = [row["epoch"] for row in history]
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    (loss, error), (agreement, rate) = axes

    def line(axis, name, label, color, scale=1.0):
        values = [scale * row[name] for row in history]
        axis.plot(epochs, values, color=color, label=label, marker=".")

    line(loss, "loss", "total", BLUE)
    line(loss, "class_loss", "class loss", ORANGE)
    loss.set_title("Training loss")
    loss.set_yscale("log")
    line(error, "error", "training", BLUE, 100)
    line(error, "val_error", "validation", ORANGE, 100)
    error.set_title("Error, %")
    error.set_yscale("log")
    units = [
        name
        for name in history[0]
        if "_agreement_" in name and name.endswith("_loss")
    ]
    for number, name in enumerate(units):
        label = name.replace("_agreement_", ", ").removesuffix("_loss")
        line(
            agreement, name, label, plt.cm.viridis(number / max(1, len(units)))
        )
    agreement.set_title("Agreement loss before λ")
    if not units:
        agreement.text(
            0.5, 0.5, "no agreement units", ha="center", color=GREY,
            transform=agreement.transAxes,
        )  # fmt: skip
    line(rate, "learning_rate", "learning rate", GREEN)
    rate.set_title("Learning rate")
    rate.set_ylim(bottom=0)
    for axis in axes.flat:
        axis.set_xlabel("epoch")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_legend_handles_labels()[0] and axis is not rate:
            axis.legend(frameon=False, fontsize="small")
    _save(figure, path)


def _save(figure, path: pathlib.Path) -> None:
    with written_atomically(path) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
    plt.close(figure)
