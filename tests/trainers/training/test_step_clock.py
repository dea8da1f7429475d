import pathlib
import resource
import time

import numpy as np
import pytest

from trainers.cost.machine_memory import peak_memory
from trainers.training import step_clock
from trainers.training.step_clock import StepClock


@pytest.fixture
def clock(monkeypatch):
    """A clock, and what moves its time."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    clock = StepClock()

    def steps(*seconds):
        for length in seconds:
            now[0] += length
            clock.on_train_batch_end(0)

    def wait(seconds):
        now[0] += seconds

    return clock, steps, wait


def test_tracing_and_validation_do_not_count(clock):
    clock, steps, wait = clock
    clock.on_train_begin()
    clock.on_epoch_begin(0)
    steps(50.0, 5.0, *[2.0] * 20)
    wait(1000.0)
    clock.on_epoch_begin(1)
    steps(*[2.0] * 15)
    assert clock.seconds_per_step == pytest.approx(2.0)
    assert clock.steps == 20 + 15


def test_a_slow_moment_does_not_count(clock):
    clock, steps, _ = clock
    clock.on_train_begin()
    steps(9.0, 9.0, *[1.0] * 50, 30.0, *[1.0] * 50)
    assert clock.seconds_per_step == pytest.approx(1.0)


def test_steps_that_wait_for_the_device_count_by_tens(clock):
    """A GPU takes orders at once and makes every tenth wait."""
    clock, steps, _ = clock
    clock.on_train_begin()
    steps(0.0, 0.0, *([0.0] * 9 + [10.0]) * 5)
    assert clock.seconds_per_step == pytest.approx(1.0)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_too_few_steps_have_no_time(clock, number):
    clock, steps, _ = clock
    clock.on_train_begin()
    steps(*[1.0] * number)
    assert clock.seconds_per_step is None
    assert clock.steps == 0


def test_memory_is_that_of_training_alone(clock, monkeypatch):
    clock, steps, _ = clock
    peaks = iter([100, 200, 999])
    monkeypatch.setattr(step_clock, "peak_memory", lambda: next(peaks))
    clock.on_train_begin()
    clock.on_epoch_begin(0)
    steps(1.0, 1.0)
    clock.on_epoch_begin(1)
    steps(1.0)
    assert clock.peak_memory == 200


def test_peak_memory_grows_with_what_is_allocated():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    before = peak_memory()
    free = before - pages * resource.getpagesize()
    block = np.ones(free + 64 * 2**20, np.uint8)
    assert peak_memory() - before == pytest.approx(64 * 2**20, rel=0.25)
    assert block[-1] == 1
