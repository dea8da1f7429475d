"""Times contestants in turn, each in a process of its own.

The threads of a framework spin for a while after a call and slow down whoever
comes next, and caches hold what the last one used. So a turn is several calls,
and the first of them does not count.
"""

import concurrent.futures
import multiprocessing
import time
from typing import NamedTuple

TURN_SECONDS = 1.0


class Call(NamedTuple):
    """What a call took, in seconds.

    Attributes:
        wall: By the clock.
        processor: Of all threads of the process together.
    """

    wall: float
    processor: float


class Worker:
    """A contestant in a process of its own.

    Args:
        make_runs: Returns calls by the name of their job; called there.
        *arguments: Of `make_runs`.
    """

    def __init__(self, make_runs, *arguments):
        self._pool = concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn")
        )
        self._pool.submit(_prepare, make_runs, arguments).result()

    def __call__(self, job):
        """Returns what the calls of a turn took."""
        return self._pool.submit(_turn_of, job).result()

    def close(self):
        """Ends the process."""
        self._pool.shutdown()


# In the process of a contestant, its calls.
_runs = {}


def _prepare(make_runs, arguments):
    _runs.update(make_runs(*arguments))


def _turn_of(job):
    return turn(_runs[job])


def turn(run, seconds=TURN_SECONDS):
    """Returns what calls took, as many as it takes to fill a turn.

    The first is left out, unless it filled the turn alone.
    """
    calls = []
    while sum(call.wall for call in calls) < seconds:
        start, work = time.perf_counter(), time.process_time()
        run()
        wall = time.perf_counter() - start
        calls.append(Call(wall, time.process_time() - work))
    return calls[1:] or calls


def in_turn(workers, job, repeats):
    """Returns the calls of each worker by name, after one turn for each."""
    for worker in workers.values():
        worker(job)
    times = {name: [] for name in workers}
    for _ in range(repeats):
        for name, worker in workers.items():
            times[name] += worker(job)
    return times
