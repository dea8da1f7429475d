"""A benchmark as text and as rows for other programs."""

from typing import Any

from trainers.benchmark.growth import GROWTHS, fit_growths
from trainers.benchmark.results import Results, product_gflops, quartiles
from trainers.cost.tables import mib
from trainers.tables import aligned


def heading(results: Results) -> str:
    """Says what computes, and how fast a matrix product is."""
    rates = ", ".join(
        f"{product_gflops(side, min(seconds)):,.0f} at {side:,}"
        for side, seconds in results.products.items()
    )
    text = (
        f"{results.machine}; TensorFlow {results.versions['tensorflow']}\n"
        f"Matrix product, float32, best of several: {rates} GFLOP/s"
    )
    if results.load_per_core > 0.5:
        text += (
            f"\nThe machine is busy (load {results.load_per_core:.1f} per "
            "core): look at the spread."
        )
    return text


def tables(results: Results) -> str:
    """Sets out all parts; medians, and quartiles as the spread."""
    found = {part: results.of_part(part) for part in _TABLES}
    return "\n\n".join(
        f"{title}\n{table(results, found[part])}"
        for part, (title, table) in _TABLES.items()
        if found[part]
    )


def _networks(results, found):
    heads = ("", "", "batch", "images/s", "quartiles", "multiply-adds/image",
             "GFLOP/s", "of peak", "in turn")  # fmt: skip
    has_memory = any(m.memory_bytes is not None for m in found)
    if has_memory:
        heads += ("memory, MiB", "counted")
    rows = [heads]
    for m in found:
        row = (
            m.name,
            m.action,
            f"{m.size}",
            f"{m.images_per_second.median:,.0f}",
            _spread(m.images_per_second),
            f"{m.multiply_adds // m.images:,}",
            f"{m.gflops.median:,.1f}",
            f"{results.share_of_peak(m):.0%}",
            f"{m.share_in_turn.median:.0%}",
        )
        if has_memory:
            row += tuple(
                "" if size is None else mib(size)
                for size in (m.memory_bytes, m.counted_bytes)
            )
        rows.append(row)
    return (
        aligned(rows, "<<" + ">" * (len(heads) - 2))
        + f"\n  (of peak: over {results.peak_gflops:,.0f} GFLOP/s, the best "
        "matrix product of the run; in turn: over one in the same round, "
        "which says more on a busy machine)"
    )


def _agreement(results, found):
    lines = [_times(results, found)]
    for name, ratios in results.agreement_ratios.items():
        ratio = quartiles(ratios)
        lines.append(
            f"  ({name}: ratio, round by round: {ratio.median:.2f}, quartiles "
            f"{_spread(ratio, '{:.2f}')})"
        )
    return "\n".join(lines)


def _pipeline(_, found):
    rows = [("augmentation", "batch", "images/s", "quartiles")]
    for m in found:
        rate = m.images_per_second
        rows.append((m.name, f"{m.size}", f"{rate.median:,.0f}", _spread(rate)))
    return aligned(rows, "<>>>")


def _times(_, found):
    rows = [("", "", "batch", "ms", "quartiles")]
    for m in found:
        low, median, high = _milliseconds(m)
        spread = f"{low} to {high}"
        rows.append((m.name, m.action, f"{m.size}", median, spread))
    return aligned(rows, "<<>>>")


def _growth(_, found):
    rows = [("", "exponent", "± standard error", "size: ms (quartiles)")]
    for name, fit in fit_growths(found).items():
        points = []
        for m in found:
            if m.name == name:
                low, median, high = _milliseconds(m)
                points.append(f"{m.size}: {median} ({low} to {high})")
        rows.append(
            (
                f"{name}: {GROWTHS[name].meaning}",
                f"{fit.exponent:.2f}",
                f"{fit.standard_error:.2f}",
                ", ".join(points),
            )
        )
    return (
        aligned(rows, "<>><")
        + "\n  (1 is in proportion; less where part of the time does not grow)"
    )


_TABLES = {
    "variants": ("Networks", _networks),
    "agreement": (
        "Agreement units: a training step with and without",
        _agreement,
    ),
    "convolutions": (
        "Convolutions: the aide's alone, and a whole step",
        _networks,
    ),
    "pipeline": ("Input: images in memory to batches", _pipeline),
    "solver": ("Sinkhorn divergence of two batches", _times),
    "growth": ("Growth: time as a power of size", _growth),
}


def csv_rows(results: Results) -> list[dict[str, Any]]:
    """Returns one row per measurement, the same columns for all."""
    return [
        {
            "part": m.part,
            "name": m.name,
            "action": m.action,
            "size": m.size,
            "rounds": len(m.seconds),
            "ms": 1000 * m.time.median,
            "ms_low": 1000 * m.time.low,
            "ms_high": 1000 * m.time.high,
            "matrix_products": m.cost.median,
            "images_per_second": m.images and m.images_per_second.median,
            "multiply_adds": m.multiply_adds,
            "gflops": m.multiply_adds and m.gflops.median,
            "share_of_peak": results.share_of_peak(m),
            "share_in_turn": m.multiply_adds and m.share_in_turn.median,
            "memory_bytes": m.memory_bytes,
            "counted_bytes": m.counted_bytes,
        }
        for m in results.measurements
    ]


def _spread(quartiles, form="{:,.0f}"):
    return f"{form.format(quartiles.low)} to {form.format(quartiles.high)}"


def _milliseconds(measurement):
    """Writes the quartiles of the time, three digits or all of them."""
    for seconds in measurement.time:
        ms = 1000 * seconds
        yield f"{ms:#.3g}" if ms < 100 else f"{ms:,.0f}"
