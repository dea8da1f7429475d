"""How long a training step takes, and how much memory."""

import time

import keras
import numpy as np

from trainers.cost.machine_memory import peak_memory

# Steps that trace and warm up say nothing about the others.
_WARM_UP = 2
# As the loop reads its reports: on a GPU only their mean is a time.
_BLOCK = 10


class StepClock(keras.callbacks.Callback):
    """Takes the time of every training step that this process makes.

    Attributes:
        peak_memory: Bytes that the process had at most until the end of its
            first epoch, before anything but training was done.
    """

    def __init__(self):
        super().__init__()
        # Per epoch its start, then the end of each step.
        self._times: list[list[float]] = []
        self.peak_memory: int | None = None

    def on_train_begin(self, logs=None):
        """Starts the clock for an epoch under way."""
        self._times = [[time.perf_counter()]]

    def on_epoch_begin(self, epoch, logs=None):
        """Starts the clock anew: between epochs there is validation."""
        self._times.append([time.perf_counter()])

    def on_train_batch_end(self, batch, logs=None):
        """Takes the time."""
        self._times[-1].append(time.perf_counter())
        if len(self._epochs()) == 1:
            self.peak_memory = peak_memory()

    @property
    def steps(self) -> int:
        """How many steps were timed."""
        return sum(len(times) - 1 for times in self._timed())

    @property
    def seconds_per_step(self) -> float | None:
        """The median over blocks of steps; None before there are any."""
        found = []
        for times in map(np.array, self._timed()):
            block = min(_BLOCK, len(times) - 1)
            found.extend((times[block:] - times[:-block]) / block)
        return float(np.median(found)) if found else None

    def _epochs(self):
        return [times for times in self._times if len(times) > 1]

    def _timed(self):
        first, *others = self._epochs() or [[]]
        timed = [first[_WARM_UP:], *others]
        return [times for times in timed if len(times) > 1]
