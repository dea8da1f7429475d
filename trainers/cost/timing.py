"""How long calls take, side by side."""

import random
import time
from collections.abc import Callable

import numpy as np


def interleaved_seconds(
    calls: dict[str, Callable[[], object]],
    seconds: float,
    *,
    least_rounds: int = 3,
    show: Callable[[float], None] | None = None,
) -> dict[str, np.ndarray]:
    """Times calls in turn, so that a busy moment hits all of them.

    Each round has an order of its own, so that what a call leaves in the
    caches does not always slow the same other call.

    Args:
        calls: What to time, by name.
        seconds: About how long to take in all.
        least_rounds: Rounds to make even when the time is over.
        show: Is told which share of the time is over, after each round.

    Returns:
        The times of each, in seconds.
    """
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, chance = list(calls), random.Random(0)
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < least_rounds or time.perf_counter() < end:
        chance.shuffle(order)
        for name in order:
            start = time.perf_counter()
            calls[name]()
            times[name].append(time.perf_counter() - start)
        rounds += 1
        if show:
            left = max(0.0, end - time.perf_counter())
            show(1 - left / seconds)
    return {name: np.array(values) for name, values in times.items()}
