"""What the rows of a reproduction gave, and how certain that is."""

import statistics
from dataclasses import dataclass
from typing import Any

from trainers.recipe import Recipe
from trainers.reproduce.rows import Row
from trainers.study.budget import Plan
from trainers.study.noise import standard_error


@dataclass(frozen=True)
class RowOutcome:
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
