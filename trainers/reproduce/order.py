"""Our order of the rows beside the paper's."""

from dataclasses import dataclass

from scipy import stats

from trainers.reproduce.answers import tau_interval
from trainers.reproduce.outcomes import RowOutcome
from trainers.reproduce.rows import Row
from trainers.study.outcome import noise


@dataclass(frozen=True)
class OrderComparison:
    """Our order of the rows beside the paper's.

    Attributes:
        rows: How many rows have an error in both.
        tau: Kendall's tau of the two orders, from -1 to 1.
        p_value: How often chance alone gives a tau as far from 0.
        interval: Where tau lies when the seeds are drawn anew (95%); None for
            a single seed.
        same: Pairs further apart than the noise, in the paper's order.
        reversed: Those in the other order: (ours better, ours worse).
        close: Pairs too close to tell.
    """

    rows: int
    tau: float
    p_value: float
    interval: tuple[float, float] | None
    same: list[tuple[Row, Row]]
    reversed: list[tuple[Row, Row]]
    close: list[tuple[Row, Row]]


def compare(outcomes: list[RowOutcome], data: str) -> OrderComparison | None:
    """Compares our order with the paper's; None for fewer than two rows.

    Args:
        outcomes: What the rows gave.
        data: Which of the paper's data sets to take.
    """
    both = [o for o in outcomes if o.error is not None and data in o.row.paper]
    if len(both) < 2:
        return None
    paper = [o.row.paper[data] for o in both]
    tau, p_value = stats.kendalltau([o.error for o in both], paper)
    pairs = {"same": [], "reversed": [], "close": []}
    ranked = sorted(both, key=lambda outcome: outcome.error)
    for place, better in enumerate(ranked):
        for worse in ranked[place + 1 :]:
            kind = "same"
            gap = worse.row.paper[data] - better.row.paper[data]
            if worse.error - better.error <= noise(better, worse) or gap == 0:
                kind = "close"
            elif gap < 0:
                kind = "reversed"
            pairs[kind].append((better.row, worse.row))
    return OrderComparison(
        len(both),
        float(tau),
        float(p_value),
        tau_interval(both, paper),
        **pairs,
    )
