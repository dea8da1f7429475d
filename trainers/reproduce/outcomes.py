"""What the rows of a reproduction gave."""

from dataclasses import dataclass
from typing import Any

from trainers.reproduce.rows import Row
from trainers.study.budget import Plan
from trainers.study.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class RowOutcome(Outcome):
    """What a row gave.

    Attributes:
        row: The row.
        plan: How long its runs are; None: not known yet.
    """

    row: Row
    plan: Plan | None

    def error_of(self, result: dict[str, Any]) -> float:
        """The test error: by crops where the paper tests so, if augmented."""
        return result.get("multi_crop_error", result["test_error"])

    @property
    def images(self) -> int:
        """The test images, the same for every seed."""
        return max(self.all_of("test_images"), default=0)

    @property
    def status(self) -> str:
        """Whether it is completed, failed or not run."""
        if self.errors:
            return "completed"
        return "failed" if self.results else "not run"

    @property
    def seconds_per_step(self) -> float | None:
        """As measured in the runs; in very short ones, beforehand."""
        measured = self.mean("seconds_per_step")
        return measured or (self.plan and self.plan.seconds_per_step)
