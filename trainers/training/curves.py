"""The curves of a run."""

import pathlib
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib import ticker

from trainers.pictures import (
    BLUE,
    COLORS,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    STYLE,
    save,
)
from trainers.runs.agreement import COLLAPSED, agreement_losses, collapses


def draw_curves(history: list[dict[str, Any]], path: pathlib.Path) -> None:
    """Draws loss, error and learning rate over the epochs, and the units.

    Of agreement units: their losses, how far f tells samples apart, and how
    hard they pull. Networks without any show the norm of the gradient.
    """
    units = [
        name.removesuffix("_loss") for name in agreement_losses(history[0])
    ]
    # Runs of earlier versions know the losses alone.
    watched = [unit for unit in units if f"{unit}_spread" in history[0]]
    rows = 3 if watched else 2
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, 2, figsize=(9.5, 3.2 * rows), layout="constrained"
        )
        figure.get_layout_engine().set(h_pad=0.1, w_pad=0.1)
        loss, error, agreement, *watching, rate = axes.flat
        _draw_loss(loss, history, units)
        _draw_error(error, history)
        _draw_agreement(agreement, history, units)
        if watched:
            _draw_spread(watching[0], history, units)
            _draw_share(watching[1], history, units)
        _line(rate, history, "learning_rate", "learning rate", GREEN)
        rate.set_title("Learning rate after the epoch")
        rate.set_ylim(bottom=0)
        rate.yaxis.set_major_formatter(ticker.FuncFormatter(_short))
        for axis in axes.flat:
            _finish_epochs(axis, history)
        save(figure, path)


def _draw_loss(axis, history, units):
    added = ["agreement"] if units else []
    added += ["decoder"] if "decoder_loss" in history[0] else []
    label = f"with {' and '.join(added)}" if added else "loss"
    _line(axis, history, "loss", label, BLUE)
    axis.set_title("Training loss")
    if added:
        _line(
            axis, history, "class_loss", "class loss alone", ORANGE, dash=(4, 3)
        )
        axis.legend()
    _fit_scale(axis)


def _draw_error(axis, history):
    _line(axis, history, "error", "training", BLUE, factor=100)
    _line(axis, history, "val_error", "validation", ORANGE, factor=100)
    best = min(history, key=lambda row: row["val_error"])
    axis.plot(
        best["epoch"], 100 * best["val_error"], "o", color=ORANGE,
        markersize=9, markerfacecolor="none", markeredgewidth=1.6,
        label=f"lowest: {best['val_error']:.2%}, epoch {best['epoch']}",
    )  # fmt: skip
    axis.set_title("Error, %")
    _fit_scale(axis)
    axis.legend()


def _draw_agreement(axis, history, units):
    """The agreement losses, or the gradient norm of a network without any."""
    if not units:
        _line(axis, history, "gradient_norm", "gradient norm", PINK)
        axis.set_title("Gradient norm (no agreement units)")
        _fit_scale(axis)
        return
    _unit_lines(axis, history, units, "loss")
    axis.set_title("Agreement loss, before λ")
    _fit_scale(axis)
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 2}
    axis.legend(**(below if len(units) > 3 else {}))


def _draw_spread(axis, history, units):
    """How far f tells samples apart, with a cross where it no longer does."""
    _unit_lines(axis, history, units, "spread", factor=100)
    found = collapses(history).items()
    for number, (unit, epoch) in enumerate(found):
        row = next(row for row in history if row["epoch"] == epoch)
        axis.plot(
            epoch, 100 * row[f"{unit}_spread"], "X", color=INK, markersize=10,
            markeredgecolor="white", zorder=4, clip_on=False,
            label="collapsed" if number == 0 else None,
        )  # fmt: skip
    axis.axhline(
        100 * COLLAPSED, color=GREY, linewidth=1, linestyle=(0, (2, 3))
    )
    axis.set_title("Spread of f(u), % of its start")
    axis.set_ylim(bottom=0)
    if found:
        axis.legend(handles=[line for line in axis.lines
                             if line.get_label() == "collapsed"])  # fmt: skip


def _draw_share(axis, history, units):
    _unit_lines(axis, history, units, "gradient_share", factor=100)
    axis.set_title("Gradient of the unit, % of the class loss's")
    _fit_scale(axis)


def _unit_lines(axis, history, units, name, factor=1.0):
    for number, unit in enumerate(units):
        color = COLORS[number % len(COLORS)]
        dash = None if number < len(COLORS) else (4, 2)
        _line(
            axis, history, f"{unit}_{name}", _unit_label(unit), color,
            factor=factor, dash=dash,
        )  # fmt: skip


def _unit_label(unit):
    """Says which ends a unit joins: module1_agreement_input."""
    higher, _, lower = unit.partition("_agreement_")
    lower = {"input": "its input", "type1": "its type I"}.get(lower, lower)
    return f"{higher} – {lower}"


def _line(axis, history, name, label, color, *, factor=1.0, dash=None):
    axis.plot(
        [row["epoch"] for row in history],
        [factor * row[name] for row in history],
        color=color,
        label=label,
        marker="o" if len(history) <= 20 else None,
        markersize=4,
        linestyle=(0, dash) if dash else "-",
    )


def _fit_scale(axis):
    """Logarithmic where values span much and none is zero, else from zero."""
    values = np.concatenate([line.get_ydata() for line in axis.lines])
    if values.min() > 0 and values.max() > 5 * values.min():
        axis.set_yscale("log")
        wide = values.max() > 1000 * values.min()
        axis.yaxis.set_major_locator(
            ticker.LogLocator(subs=(1,) if wide else (1, 2, 5), numticks=12)
        )
        axis.yaxis.set_major_formatter(ticker.FuncFormatter(_short))
        axis.yaxis.set_minor_locator(ticker.NullLocator())
    else:
        axis.set_ylim(min(0.0, values.min()), 1.1 * values.max() or 1.0)


def _short(value, _):
    return f"{value:.4g}" if value == 0 or value >= 1e-4 else f"{value:.1e}"


def _finish_epochs(axis, history):
    axis.set_xlabel("epoch")
    last = history[-1]["epoch"]
    axis.set_xticks(_whole_epochs(last))
    # A single point stands at the left, clear of the legend.
    room = 0.02 * (last - 1) or 0.2
    axis.set_xlim(1 - room, last + (room if last > 1 else 1))
    axis.grid(True)
    axis.set_axisbelow(True)


def _whole_epochs(last, most=8):
    """Returns ticks from the first epoch to the last, round ones between."""
    steps = (base * 10**power for power in range(9) for base in (1, 2, 5))
    step = next(step for step in steps if last / step < most)
    between = range(step, last, step)
    return [1, *(n for n in between if 1 + step / 2 <= n <= last - step / 2),
            *([last] if last > 1 else [])]  # fmt: skip
