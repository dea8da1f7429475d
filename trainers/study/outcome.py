"""What the runs of one setting gave, seed by seed, and how certain that is."""

import abc
import statistics
from dataclasses import dataclass
from typing import Any

from trainers.recipe import Recipe
from trainers.study.noise import noise_between, standard_error


@dataclass(frozen=True, kw_only=True)
class Outcome(abc.ABC):
    """The runs of a trial of a search, or of a row of a table.

    Attributes:
        recipe: How they are trained; the seed is that of the first.
        results: By seed, of the runs that are over.
    """

    recipe: Recipe
    results: dict[int, dict[str, Any]]

    @abc.abstractmethod
    def error_of(self, result: dict[str, Any]) -> float:
        """Returns the error that counts of a run that did not fail."""

    @property
    @abc.abstractmethod
    def images(self) -> int:
        """How many images the mean error was measured on."""

    @property
    def errors(self) -> dict[int, float]:
        """The error of each seed that has one."""
        return {
            seed: self.error_of(result)
            for seed, result in self.results.items()
            if "failed" not in result
        }

    @property
    def error(self) -> float | None:
        """The mean error over the seeds."""
        return statistics.fmean(self.errors.values()) if self.errors else None

    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds, of two or more."""
        errors = list(self.errors.values())
        return statistics.stdev(errors) if len(errors) > 1 else None

    @property
    def failure(self) -> dict[str, Any]:
        """The first result of a run that failed, with its `reason`, if any."""
        return next((r for r in self.results.values() if "failed" in r), {})

    def all_of(self, name: str) -> list[Any]:
        """Returns a number of each run that has it."""
        found = (result.get(name) for result in self.results.values())
        return [value for value in found if value is not None]

    def mean(self, name: str) -> float | None:
        """The mean of a number over the runs that have it."""
        found = self.all_of(name)
        return statistics.fmean(found) if found else None

    @property
    def standard_error(self) -> float:
        """How far the mean error may be off, by images and by seeds."""
        return standard_error(
            self.error, self.images, self.spread, len(self.errors)
        )


def noise(one: Outcome, other: Outcome) -> float:
    """How far apart two errors must be to mean anything."""
    return noise_between(one.standard_error, other.standard_error)
