"""The answers to what an experiment asks, row against row, with their test."""

import math
import statistics
from dataclasses import dataclass

import numpy as np
from scipy import stats

from trainers.reproduce.outcomes import RowOutcome

# A difference that chance makes less often than this counts.
LEVEL = 0.05


@dataclass(frozen=True)
class Answer:
    """What the seeds that both rows have say.

    Attributes:
        gain: How much less error the row has, mean over the seeds.
        spread: The standard deviation of that; None for a single seed.
        p_value: Of a paired t-test over the seeds; None for a single seed.
        seeds: How many.
    """

    gain: float
    spread: float | None
    p_value: float | None
    seeds: int

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if self.p_value is None or self.p_value >= LEVEL:
            return "Cannot be told"
        return "Yes" if self.gain > 0 else "No, the other way round"


def answer(row: RowOutcome, other: RowOutcome) -> Answer | None:
    """Compares two rows seed by seed; None where they share no seed."""
    seeds = sorted(row.errors.keys() & other.errors.keys())
    if not seeds:
        return None
    gains = [other.errors[seed] - row.errors[seed] for seed in seeds]
    gain = statistics.fmean(gains)
    if len(seeds) == 1:
        return Answer(gain, None, None, 1)
    spread = statistics.stdev(gains)
    if spread < 1e-12:  # alike to the last bit: nothing to divide by
        return Answer(gain, 0.0, float(gain == 0), len(seeds))
    t_value = gain / (spread / math.sqrt(len(seeds)))
    p_value = 2 * stats.t.sf(abs(t_value), len(seeds) - 1)
    return Answer(gain, spread, float(p_value), len(seeds))


def tau_interval(
    outcomes: list[RowOutcome], paper: list[float], draws: int = 1_000
) -> tuple[float, float] | None:
    """Returns within which bounds tau lies when the seeds are drawn anew.

    Args:
        outcomes: Rows with an error.
        paper: The paper's errors of the same rows.
        draws: How often to draw as many seeds as there are, with repetition,
            the same ones for all rows.

    Returns:
        The 2.5th and 97.5th percentile, or None where the rows share fewer
        than two seeds.
    """
    seeds = sorted(set.intersection(*(set(o.errors) for o in outcomes)))
    if len(seeds) < 2:
        return None
    errors = np.array([[o.errors[seed] for seed in seeds] for o in outcomes])
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, len(seeds), (draws, len(seeds)))
    taus = [
        stats.kendalltau(errors[:, seeds].mean(axis=1), paper).statistic
        for seeds in chosen
    ]
    if np.isnan(taus).all():  # all rows are equal
        return None
    low, high = np.nanpercentile(taus, (2.5, 97.5))
    return float(low), float(high)
