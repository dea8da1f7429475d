"""How long a run is: by epochs, or by the time available."""

import math
from dataclasses import dataclass

_LEAST_STEPS = 10


@dataclass(frozen=True)
class Plan:
    """How long the runs of a row are.

    Attributes:
        epochs: Number of epochs.
        steps_per_epoch: Steps of each; None: a whole pass over the data.
        seconds_per_step: What a step took when the plan was made by time.
    """

    epochs: int
    steps_per_epoch: int | None = None
    seconds_per_step: float | None = None


def plan_by_time(
    seconds: float, seconds_per_step: float, steps: int, least_epochs: int = 1
) -> Plan:
    """Plans a run that takes a given time.

    Args:
        seconds: The time there is for training steps.
        seconds_per_step: What a step takes.
        steps: Steps of a pass over the data.
        least_epochs: Into how many epochs to divide the run at least, unless
            they had hardly any steps: each ends with a validation.

    Returns:
        A plan: passes over the data, all of them cut to the same length.

    Example:
        >>> plan_by_time(60, 0.1, steps=400)
        Plan(epochs=2, steps_per_epoch=300, seconds_per_step=0.1)
    """
    total = max(1, int(seconds / seconds_per_step))
    most = max(1, total // _LEAST_STEPS)
    epochs = max(math.ceil(total / steps), min(least_epochs, most))
    return Plan(epochs, total // epochs, seconds_per_step)
