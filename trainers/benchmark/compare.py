"""What became slower or faster since a stored benchmark."""

from typing import NamedTuple

from trainers.benchmark.results import Key, Results
from trainers.tables import aligned

# Smaller changes of the median are not worth a look.
_LEAST_CHANGE = 1.1
# Of what only one run has.
_NAMED = 5


class Change(NamedTuple):
    """One measurement in two runs.

    Attributes:
        key: What was measured.
        ratio: Of the medians, now over before; 2 is twice as slow.
        verdict: "slower", "faster" or "same".
    """

    key: Key
    ratio: float
    verdict: str


class SpeedComparison(NamedTuple):
    """Two runs side by side.

    Attributes:
        changes: What both measured, the slowest first.
        missing: What only the stored one has.
        new: What only this one has.
    """

    changes: list[Change]
    missing: list[Key]
    new: list[Key]

    @property
    def is_slower(self) -> bool:
        """Whether anything became slower."""
        return any(c.verdict == "slower" for c in self.changes)


def compare(base: Results, results: Results) -> SpeedComparison:
    """Compares two runs, on one machine or two.

    Times are taken in units of the matrix product in the same round, so that
    a slower or a busy machine is no slower software. Something is slower when
    its median cost is more than 10% above the stored one and the middle halves
    of both, from quartile to quartile, do not overlap; faster the other way
    round.

    Args:
        base: The stored run.
        results: This run.

    Raises:
        ValueError: They have nothing in common.
    """
    before = {m.key: m.cost for m in base.measurements}
    now = {m.key: m.cost for m in results.measurements}
    common = [key for key in now if key in before]
    if not common:
        raise ValueError(
            "The stored benchmark must have something in common with this "
            f"one. Received: {len(before)} other measurements, made with "
            f"{base.settings}."
        )
    changes = [_change(key, before[key], now[key]) for key in common]
    return SpeedComparison(
        sorted(changes, key=lambda change: -change.ratio),
        [key for key in before if key not in now],
        [key for key in now if key not in before],
    )


def _change(key, before, now):
    ratio = now.median / before.median
    verdict = "same"
    if ratio > _LEAST_CHANGE and now.low > before.high:
        verdict = "slower"
    elif ratio < 1 / _LEAST_CHANGE and now.high < before.low:
        verdict = "faster"
    return Change(key, ratio, verdict)


def comparison_text(
    base: Results, results: Results, comparison: SpeedComparison
) -> str:
    """Sets out what changed, and what could not be compared."""
    lines = [
        f"Against the stored run ({_origin(base)}; here {_origin(results)}), "
        "times over those of a matrix product:"
    ]
    changed = [c for c in comparison.changes if c.verdict != "same"]
    if changed:
        rows = [("", "measurement", "time, now over before")]
        rows += [(c.verdict, str(c.key), f"{c.ratio:.2f}") for c in changed]
        lines.append(aligned(rows, "<<>"))
    lines.append(
        f"  {len(comparison.changes) - len(changed)} of "
        f"{len(comparison.changes)} the same within the noise."
    )
    for title, keys in (
        ("Not measured now", comparison.missing),
        ("Not in the stored run", comparison.new),
    ):
        if keys:
            named = "; ".join(map(str, keys[:_NAMED]))
            more = f"; {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
            lines.append(f"  {title}: {named}{more}.")
    return "\n".join(lines)


def _origin(results):
    software = results.versions.get("tensorflow", "of unknown version")
    return (
        f"{results.machine}, TensorFlow {software}, matrix product "
        f"{results.peak_gflops:,.0f} GFLOP/s"
    )
