"""What the rows of a reproduction gave, and how sure that is."""

import math
import statistics
from dataclasses import dataclass
from typing import Any

from scipy import stats

from trainers.recipe import Recipe
from trainers.reproduce.experiments import Row
from trainers.scoring import standard_error
from trainers.study.budget import Plan


@dataclass(frozen=True)
class Outcome:
    """What a row gave.

    Attributes:
        row: The row.
        recipe: How it is trained, its length aside.
        plan: Its length; None: not known yet.
        results: By seed, of the runs that are over.
    """

    row: Row
    recipe: Recipe
    plan: Plan | None
    results: dict[int, dict[str, Any]]

    @property
    def status(self) -> str:
        """Whether it is completed, failed or not run."""
        if self.errors:
            return "completed"
        return "failed" if self.results else "not run"

    @property
    def failure(self) -> str | None:
        """Why a run of it failed, where one did."""
        reasons = (r["reason"] for r in self.results.values() if "failed" in r)
        return next(reasons, None)

    @property
    def errors(self) -> dict[int, float]:
        """The test error of each seed that has one.

        By several crops where the paper tests so: after augmentation.
        """
        return {
            seed: result.get("multi_crop_error", result["test_error"])
            for seed, result in self.results.items()
            if "failed" not in result
        }

    @property
    def error(self) -> float | None:
        """The mean test error over the seeds."""
        return statistics.fmean(self.errors.values()) if self.errors else None

    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds, of two or more."""
        errors = list(self.errors.values())
        return statistics.stdev(errors) if len(errors) > 1 else None

    @property
    def seconds_per_step(self) -> float | None:
        """As measured in the runs; in very short ones, beforehand."""
        measured = self.mean("seconds_per_step")
        return measured or (self.plan and self.plan.seconds_per_step)

    def mean(self, name: str) -> float | None:
        """The mean of a number over the runs that have it."""
        found = (result.get(name) for result in self.results.values())
        found = [value for value in found if value is not None]
        return statistics.fmean(found) if found else None

    @property
    def standard_error(self) -> float:
        """How far the mean error may be off, by images and by seeds."""
        images = max(r.get("test_images", 0) for r in self.results.values())
        return standard_error(self.error, images, self.spread, len(self.errors))


def noise(one: Outcome, other: Outcome) -> float:
    """Two standard errors of the difference of two rows' errors.

    Rows are tested on the same images, so this is rather too much.
    """
    return 2 * math.hypot(one.standard_error, other.standard_error)


@dataclass(frozen=True)
class Comparison:
    """Our order of the rows beside the paper's.

    Attributes:
        rows: How many rows have an error in both.
        tau: Kendall's tau of the two orders, from -1 to 1.
        p_value: How often chance alone gives a tau as far from 0.
        same: Pairs further apart than the noise, in the paper's order.
        reversed: Those in the other order: (ours better, ours worse).
        close: Pairs too close to tell.
    """

    rows: int
    tau: float
    p_value: float
    same: list[tuple[Row, Row]]
    reversed: list[tuple[Row, Row]]
    close: list[tuple[Row, Row]]


def compare(outcomes: list[Outcome], data: str) -> Comparison | None:
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
    return Comparison(len(both), float(tau), float(p_value), **pairs)
