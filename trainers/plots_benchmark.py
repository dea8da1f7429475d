"""The picture of a benchmark: throughput, use of the machine, growth."""

import pathlib
from collections.abc import Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib import ticker

from trainers.benchmark_growth import fit_growths
from trainers.benchmark_results import Measurement, Quartiles, Results
from trainers.plots import (
    BLUE,
    COLORS,
    GREEN,
    GREY,
    INK,
    ORANGE,
    STYLE,
    save,
)

_COLOR_OF = {
    "train": BLUE,
    "inference": ORANGE,
    "forward": ORANGE,
    "backward": GREEN,
}


def draw(results: Results, path: pathlib.Path) -> None:
    """Draws one panel for every part that was measured."""
    panels = [
        (draw_panel, found)
        for part, draw_panel in (
            ("variants", _draw_throughput),
            ("variants", _draw_share),
            ("convolutions", _draw_convolutions),
            ("pipeline", _draw_pipeline),
            ("solver", _draw_solver),
            ("growth", _draw_growth),
        )
        if (found := results.of_part(part))
    ]
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows,
            columns,
            figsize=(6.2 * columns, 3.5 * rows),
            layout="constrained",
            squeeze=False,
        )
        figure.get_layout_engine().set(h_pad=0.12, w_pad=0.12)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        for axis, (draw_panel, found) in zip(axes.flat, panels, strict=False):
            draw_panel(axis, found, results)
            axis.set_axisbelow(True)
        save(figure, path)


def _draw_throughput(axis, found, _):
    axis.set_title(f"Images per second, batch {found[0].size}")
    rates = [m.images_per_second for m in found]
    _bars(axis, found, rates, "{:,.0f}")
    _thousands(axis.xaxis)


def _draw_share(axis, found, results):
    axis.set_title("Use of the machine: % of the matrix-product peak")
    _bars(axis, found, _shares(found, results), "{:.3g}%")


def _draw_convolutions(axis, found, results):
    axis.set_title(f"Aide convolutions, batch {found[0].size}: % of the peak")
    _bars(axis, found, _shares(found, results), "{:.3g}%")


def _draw_pipeline(axis, found, _):
    axis.set_title(f"Input by augmentation: images per second, batch "
                   f"{found[0].size}")  # fmt: skip
    rates = [m.images_per_second for m in found]
    _bars(axis, found, rates, "{:,.0f}")
    _thousands(axis.xaxis)


def _shares(found, results):
    return [
        Quartiles(*(100 * rate / results.peak_gflops for rate in m.gflops))
        for m in found
    ]


def _bars(
    axis,
    found: Sequence[Measurement],
    values: Sequence[Quartiles],
    form: str,
) -> None:
    """Draws horizontal bars with quartiles, one group for every name."""
    names = list(dict.fromkeys(m.name for m in found))
    actions = list(dict.fromkeys(m.action for m in found))
    thickness = 0.8 / len(actions)
    for action in actions:
        rows = [
            (names.index(m.name) + thickness * _place(m, found), value)
            for m, value in zip(found, values, strict=True)
            if m.action == action
        ]
        _draw_action(axis, action, rows, 0.92 * thickness, form)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
    axis.margins(x=0.16)
    axis.set_xlim(left=0)
    axis.grid(True, axis="x")
    if len(actions) > 1:
        axis.legend(loc="best")


def _draw_action(axis, action, rows, thickness, form):
    places = [place for place, _ in rows]
    low, middle, high = np.array([value for _, value in rows]).T
    axis.barh(
        places, middle, thickness, xerr=(middle - low, high - middle),
        label=action, color=_COLOR_OF.get(action, BLUE),
        error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 2},
    )  # fmt: skip
    for place, value in rows:
        axis.annotate(
            form.format(value.median), (value.high, place), (5, 0),
            textcoords="offset points", va="center", fontsize=8.5,
        )  # fmt: skip


def _place(measurement, found):
    """How far from the middle of its group a bar lies, in bars."""
    group = [m.action for m in found if m.name == measurement.name]
    return group.index(measurement.action) - (len(group) - 1) / 2


def _draw_solver(axis, found, _):
    axis.set_title("Sinkhorn divergence, ms")
    for number, domain in enumerate(dict.fromkeys(m.name for m in found)):
        for action in dict.fromkeys(m.action for m in found):
            rows = [m for m in found if (m.name, m.action) == (domain, action)]
            axis.plot(
                [m.size for m in rows],
                [1000 * m.time.median for m in rows],
                "o-" if action != "value" else "o--",
                color=COLORS[number],
                markersize=4,
                label=f"{domain}: {action}",
            )
    _log_axes(axis, sorted({m.size for m in found}))
    axis.set_xlabel("batch")
    axis.legend(handlelength=2.8)


def _draw_growth(axis, found, _):
    axis.set_title("Time over size, each from its smallest")
    fits = fit_growths(found)
    largest = 1.0
    for number, (name, fit) in enumerate(fits.items()):
        rows = [m for m in found if m.name == name]
        sizes = np.array([m.size for m in rows]) / rows[0].size
        times = np.array([m.time.median for m in rows]) / rows[0].time.median
        largest = max(largest, sizes.max())
        axis.plot(
            sizes, times, "o-", color=COLORS[number], markersize=4,
            label=f"{name}: exponent {fit.exponent:.2f} ± "
            f"{fit.standard_error:.2f}",
        )  # fmt: skip
    ends = np.array([1.0, largest])
    axis.plot(ends, ends, color=GREY, linewidth=1, linestyle=(0, (4, 3)),
              label="in proportion", zorder=1)  # fmt: skip
    _log_axes(axis, [2**n for n in range(int(np.log2(largest)) + 1)])
    axis.set_xlabel("times the smallest size")
    axis.legend()


def _log_axes(axis, sizes):
    axis.grid(True)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(
        ticker.FuncFormatter(lambda value, _: f"{value:g}")
    )
    for side in (axis.xaxis, axis.yaxis):
        side.set_minor_locator(ticker.NullLocator())


def _thousands(side):
    side.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
