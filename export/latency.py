"""How long models take to answer, side by side."""

import time
from collections.abc import Callable

import numpy as np


def interleaved_seconds(
    calls: dict[str, Callable[[], object]], seconds: float
) -> dict[str, np.ndarray]:
    """Times calls in turn, so that a busy moment hits all of them.

    Args:
        calls: What to time, by name.
        seconds: About how long to take in all, three rounds at least.

    Returns:
        The times of each, in seconds.
    """
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while len(times[next(iter(times))]) < 3 or time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: np.array(values) for name, values in times.items()}
