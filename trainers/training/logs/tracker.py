"""What follows a run from outside: the interface of each."""

import pathlib
from collections.abc import Sequence
from typing import Any, Protocol

Row = dict[str, Any]


class Tracker(Protocol):
    """Follows one run.

    Made of the recipe, the run's folder and, where the run goes on that it
    followed before, the id that it had.

    Attributes:
        id: What the tracker's own server or files know the run by.
    """

    id: str

    def write(self, row: Row) -> None:
        """Takes the row of an epoch, as in `metrics.csv`."""

    def end(self, summary: Row | None, files: Sequence[pathlib.Path]) -> None:
        """Takes what came out; None where the run did not reach its end."""


def numbers(summary: Row) -> dict[str, float]:
    """Returns what of a summary can be drawn or sorted by.

    Example:
        >>> numbers({"epochs": 4, "class_names": ["cat"], "multi_crop": True})
        {'epochs': 4}
    """
    return {
        name: value
        for name, value in summary.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
