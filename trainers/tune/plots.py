"""The picture of a search: error over what was searched."""

import pathlib
from collections.abc import Sequence

import numpy as np
from matplotlib import colors, ticker
from matplotlib import pyplot as plt
from scipy.interpolate import RBFInterpolator
from scipy.spatial import Delaunay, QhullError

from trainers.pictures import BLUE, GREY, INK, ORANGE, STYLE, save
from trainers.tune.axes import Axis
from trainers.tune.trials import TrialOutcome

_LANDSCAPE = ("agreement_weight", "agreement_epsilon")
_PAPER = (10.0, 0.1)
# Fewer points say nothing about what lies between them.
_POINTS_FOR_BACKGROUND = 8
# More numbers than this would hide one another.
_NUMBERS = 16
_LABELS = {
    "agreement_weight": "λ, weight of the agreement loss",
    "agreement_epsilon": "ε of the Sinkhorn iterations",
    "num_iterations": "L, Sinkhorn iterations",
    "type2_layers": "N, type II layers of a module",
}
# Dark is good; even the worst stands out from white.
_COLOURS = plt.get_cmap("viridis")


def draw(
    axes: Sequence[Axis], outcomes: Sequence[TrialOutcome], path: pathlib.Path
) -> None:
    """Draws error over λ and ε, or over each axis where others are searched."""
    outcomes = _longest(outcomes)
    with plt.rc_context(STYLE):
        if {axis.name for axis in axes} == set(_LANDSCAPE):
            by_name = {axis.name: axis for axis in axes}
            figure = _landscape([by_name[n] for n in _LANDSCAPE], outcomes)
        else:
            figure = _panels(axes, outcomes)
        save(figure, path)


def _longest(outcomes):
    """Of trials with the same values (hyperband), the longest run."""
    ended = [o for o in outcomes if o.status != "running"]
    ended.sort(key=lambda outcome: outcome.recipe.epochs)
    return list({tuple(o.values.values()): o for o in ended}.values())


def _split(outcomes):
    done = [o for o in outcomes if o.status == "completed"]
    return done, [o for o in outcomes if o.status == "failed"]


def _landscape(axes, outcomes):
    done, failed = _split(outcomes)
    figure, axis = plt.subplots(figsize=(7.6, 5.6), layout="constrained")
    for setting, side in zip(axes, (axis.xaxis, axis.yaxis), strict=True):
        _scale(side, setting)
    errors = np.array([100 * o.error for o in done])
    norm = colors.Normalize(errors.min(), max(errors.max(), errors.min() + 0.1))
    points = _points(done)
    _background(axis, axes, points, errors, norm)
    dots = axis.scatter(
        *points.T, c=errors, norm=norm, cmap=_COLOURS, s=95,
        edgecolors="white", linewidths=1.2, zorder=3,
    )  # fmt: skip
    if len(done) <= _NUMBERS:
        _write_errors(axis, points, errors)
    if failed:
        axis.scatter(
            *_points(failed).T, marker="x", color=GREY, s=70,
            linewidths=2.2, zorder=4, label="failed",
        )  # fmt: skip
    axis.scatter(
        *_PAPER, marker="s", s=230, facecolors="none", edgecolors=INK,
        linewidths=1.6, zorder=2, label="the paper's λ = 10, ε = 0.1",
    )  # fmt: skip
    best = min(done, key=lambda outcome: outcome.error)
    axis.scatter(
        *_points([best]).T, s=230, facecolors="none", edgecolors=ORANGE,
        linewidths=2.0, zorder=4,
        label=f"best: {best.error:.2%}, {_values_text(best)}",
    )  # fmt: skip
    axis.set_title("Validation error over λ and ε")
    axis.legend(
        loc="upper left", bbox_to_anchor=(0, -0.13), ncols=3, borderaxespad=0
    )
    bar = figure.colorbar(dots, ax=axis, label="validation error, %", pad=0.02)
    bar.outline.set_visible(False)
    return figure


def _write_errors(axis, points, errors):
    for point, error in zip(points, errors, strict=True):
        axis.annotate(
            f"{error:.1f}", point, xytext=(0, 11), fontsize=8, ha="center",
            textcoords="offset points", zorder=5,
        )  # fmt: skip


def _values_text(outcome):
    weight, epsilon = (outcome.values[name] for name in _LANDSCAPE)
    return f"λ = {weight:.3g}, ε = {epsilon:.3g}"


def _points(outcomes):
    return np.array([[o.values[name] for name in _LANDSCAPE] for o in outcomes])


def _background(axis, axes, points, errors, norm):
    """Smooth between the tried points, and nowhere else."""
    if len(points) < _POINTS_FOR_BACKGROUND:
        return
    places = np.log10(points)
    try:
        hull = Delaunay(places)
    except QhullError:  # all on one line
        return
    low, high = places.min(axis=0), places.max(axis=0)
    sides = [np.linspace(a, b, 200) for a, b in zip(low, high, strict=True)]
    mesh = np.stack(np.meshgrid(*sides), axis=-1)
    smooth = RBFInterpolator(places, errors, smoothing=0.1)
    flat = mesh.reshape(-1, 2)
    surface = smooth(flat).clip(errors.min(), errors.max())
    surface[hull.find_simplex(flat) < 0] = np.nan
    axis.contourf(
        *np.moveaxis(10**mesh, -1, 0), surface.reshape(mesh.shape[:2]),
        levels=np.linspace(norm.vmin, norm.vmax, 13), cmap=_COLOURS, norm=norm,
        alpha=0.45, zorder=1,
    )  # fmt: skip


def _panels(axes, outcomes):
    done, failed = _split(outcomes)
    figure, panels = plt.subplots(
        1,
        len(axes),
        figsize=(max(4.6, 3.6 * len(axes)), 4.2),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    best = min(done, key=lambda outcome: outcome.error)
    top = 105 * max(o.error for o in done)
    for setting, panel in zip(axes, panels[0], strict=True):
        _scale(panel.xaxis, setting)
        name = setting.name
        panel.plot(
            [o.values[name] for o in done], [100 * o.error for o in done],
            "o", color=BLUE, markeredgecolor="white", markersize=8,
        )  # fmt: skip
        panel.plot(
            [best.values[name]], [100 * best.error], "o", color=ORANGE,
            markersize=13, markerfacecolor="none", markeredgewidth=2,
            label=f"best: {best.error:.2%}",
        )  # fmt: skip
        if failed:
            panel.plot(
                [o.values[name] for o in failed], [top] * len(failed), "x",
                color=GREY, markersize=8, markeredgewidth=2, label="failed",
            )  # fmt: skip
        panel.grid(True)
        panel.set_axisbelow(True)
    panels[0][0].set_ylabel("validation error, %")
    panels[0][0].legend()
    figure.suptitle(
        "Validation error over what was searched",
        fontweight="bold", fontsize=11, x=0.01, ha="left",
    )  # fmt: skip
    return figure


def _scale(side, setting):
    side.set_label_text(
        _LABELS.get(setting.name, setting.name.replace("_", " "))
    )
    panel = side.axes
    is_x = side is panel.xaxis
    if setting.choices:
        # Drawn first, so that the choices keep their order.
        panel.plot(setting.choices, [np.nan] * len(setting.choices))
        panel.margins(x=0.2)
        return
    if setting.log:
        (panel.set_xscale if is_x else panel.set_yscale)("log")
        side.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:g}"))
        side.set_minor_formatter(ticker.NullFormatter())
        room = (setting.high / setting.low) ** 0.06
        limits = setting.low / room, setting.high * room
    else:
        room = 0.06 * (setting.high - setting.low)
        limits = setting.low - room, setting.high + room
    if setting.integer and not setting.log:
        side.set_major_locator(ticker.MaxNLocator(integer=True))
    (panel.set_xlim if is_x else panel.set_ylim)(*limits)
