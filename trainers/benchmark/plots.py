"""The picture of a benchmark: one panel for everything that was measured."""

import pathlib
from collections.abc import Iterable

import numpy as np
from matplotlib import pyplot as plt
from matplotlib import ticker

from trainers.benchmark.growth import fit_growths
from trainers.benchmark.results import Quartiles, Results, quartiles
from trainers.pictures import COLORS, GREY, INK, STYLE, save

# The name of its group, what it is, its length and spread.
Bar = tuple[str, str, Quartiles]


def draw(results: Results, path: pathlib.Path) -> None:
    """Draws what was measured, two panels in a row."""
    panels = [
        (draw_panel, found)
        for part, draw_panel in (
            ("variants", _draw_throughput),
            ("variants", _draw_share),
            ("variants", _draw_memory),
            ("convolutions", _draw_convolutions),
            ("agreement", _draw_agreement),
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
            figsize=(6.2 * columns, 3.4 * rows),
            layout="constrained",
            squeeze=False,
        )
        figure.suptitle(
            f"{results.machine}; TensorFlow {results.versions['tensorflow']}; "
            f"matrix product {results.peak_gflops:,.0f} GFLOP/s at best\n"
            "use of the machine: GFLOP/s over a matrix product's, in turn",
            x=0.01, ha="left", fontsize=9, color=GREY,
        )  # fmt: skip
        figure.get_layout_engine().set(h_pad=0.12, w_pad=0.12)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        for axis, (draw_panel, found) in zip(axes.flat, panels, strict=False):
            draw_panel(axis, found, results)
            axis.set_axisbelow(True)
        save(figure, path)


def _draw_throughput(axis, found, _):
    axis.set_title(f"Networks: images per second, batch {found[0].size}")
    _draw_bars(axis, [(m.name, m.action, m.images_per_second) for m in found])


def _draw_share(axis, found, _):
    axis.set_title("Networks: use of the machine, %")
    _draw_bars(axis, _shares(found))


def _draw_memory(axis, found, _):
    axis.set_title("Memory of training, MiB")
    bars = []
    for m in found:
        if m.memory_bytes is not None:
            for label, size in (
                ("measured", m.memory_bytes),
                ("counted by trainers.summary", m.counted_bytes),
            ):
                bars.append((m.name, label, Quartiles(*[size / 2**20] * 3)))
    _draw_bars(axis, bars)


def _draw_convolutions(axis, found, _):
    axis.set_title(f"Aide convolutions, batch {found[0].size}: use, %")
    _draw_bars(axis, _shares(found))


def _draw_pipeline(axis, found, _):
    axis.set_title(f"Augmentation: images per second, batch {found[0].size}")
    _draw_bars(axis, [(m.name, m.action, m.images_per_second) for m in found])


def _draw_agreement(axis, _, results):
    """Draws the ratio of each round, so that its noise is seen."""
    axis.set_title("Agreement units: a step with over one without")
    networks = results.agreement_ratios.items()
    for color, (name, ratios) in zip(COLORS, networks, strict=False):
        low, median, high = quartiles(ratios)
        axis.axhspan(low, high, color=color, alpha=0.15, linewidth=0)
        axis.axhline(
            median,
            color=color,
            label=f"{name}: {median:.2f} ({low:.2f} to {high:.2f})",
        )
        rounds = range(1, len(ratios) + 1)
        axis.plot(rounds, ratios, "o", color=color, markersize=3)
    axis.axhline(1, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    axis.margins(y=0.25)
    axis.grid(True, axis="y")
    axis.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axis.set_xlabel("round")
    axis.legend()


def _shares(found):
    for m in found:
        share = Quartiles(*(100 * value for value in m.share_in_turn))
        yield m.name, m.action, share


def _draw_bars(axis: plt.Axes, bars: Iterable[Bar]) -> None:
    """Draws horizontal bars with quartiles, one group for every name."""
    bars = list(bars)
    groups: dict[str, list[str]] = {}
    for name, label, _ in bars:
        groups.setdefault(name, []).append(label)
    labels = list(dict.fromkeys(label for _, label, _ in bars))
    thickness = 0.8 / max(map(len, groups.values()))
    for color, label in zip(COLORS, labels, strict=False):
        rows = []
        for name, other, value in bars:
            if other == label:
                group = groups[name]
                shift = group.index(label) - (len(group) - 1) / 2
                place = list(groups).index(name) + thickness * shift
                rows.append((place, value))
        _draw_label(axis, label, color, rows, 0.92 * thickness)
    axis.set_yticks(range(len(groups)), groups, fontsize=9)
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
    axis.set_xlim(0, 1.16 * axis.get_xlim()[1])
    axis.grid(True, axis="x")
    axis.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    if len(labels) > 1:
        axis.legend(
            loc="upper left", bbox_to_anchor=(0, -0.08), ncols=len(labels)
        )


def _draw_label(axis, label, color, rows, thickness):
    places = [place for place, _ in rows]
    low, middle, high = np.array([value for _, value in rows]).T
    spread = np.array((middle - low, high - middle))
    axis.barh(
        places, middle, thickness, xerr=np.where(spread > 0, spread, np.nan),
        label=label, color=color,
        error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 2},
    )  # fmt: skip
    for place, value in rows:
        axis.annotate(
            _short(value.median), (value.high, place), (5, 0),
            textcoords="offset points", va="center", fontsize=8.5,
        )  # fmt: skip


def _draw_solver(axis, found, _):
    axis.set_title("Sinkhorn divergence, ms")
    for color, domain in zip(
        COLORS, dict.fromkeys(m.name for m in found), strict=False
    ):
        for action in dict.fromkeys(m.action for m in found):
            rows = [m for m in found if (m.name, m.action) == (domain, action)]
            axis.plot(
                [m.size for m in rows],
                [1000 * m.time.median for m in rows],
                "o-" if action != "value" else "o--",
                color=color,
                markersize=4,
                label=f"{domain}: {action}",
            )
    _set_log_axes(axis, sorted({m.size for m in found}))
    # Room for the legend.
    axis.set_ylim(top=3 * axis.get_ylim()[1])
    axis.set_xlabel("batch")
    axis.legend(handlelength=2.8)


def _draw_growth(axis, found, _):
    axis.set_title("Time over size, each from its smallest")
    largest = 1.0
    for color, (name, fit) in zip(
        COLORS, fit_growths(found).items(), strict=False
    ):
        rows = [m for m in found if m.name == name]
        sizes = np.array([m.size for m in rows]) / rows[0].size
        times = np.array([m.time.median for m in rows]) / rows[0].time.median
        largest = max(largest, sizes.max())
        axis.plot(
            sizes, times, "o-", color=color, markersize=4,
            label=f"{name}: exponent {fit.exponent:.2f} ± "
            f"{fit.standard_error:.2f}",
        )  # fmt: skip
    ends = np.array([1.0, largest])
    axis.plot(ends, ends, color=GREY, linewidth=1, linestyle=(0, (4, 3)),
              label="in proportion", zorder=1)  # fmt: skip
    _set_log_axes(axis, [2**n for n in range(int(np.log2(largest)) + 1)])
    axis.set_xlabel("times the smallest size")
    axis.legend()


def _set_log_axes(axis, sizes):
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


def _short(value):
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"
