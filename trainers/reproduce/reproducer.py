"""What trains and tests one run of a reproduction, in a `Child`.

Each run has a process of its own, so that its memory can be told.
"""

import dataclasses
import statistics
from typing import Any

import keras

from trainers import machine
from trainers.evaluate.winners import entries_by_class, read_winners
from trainers.recipe import Recipe, make_recipe
from trainers.reproduce.figures.routing_dynamics import RoutingDynamics
from trainers.runs.folder import RunFolder
from trainers.study.trainer import Trainer, failure, refuse_bad_weights
from trainers.training.curves import draw_curves
from trainers.training.finishing import finish_run
from trainers.training.loop import Loop
from trainers.training.step_clock import StepClock

# Only the clock ends a run that is timed.
_ENDLESS = 10**6
# Timed steps that are enough, once the time is over.
_LEAST_STEPS = 3


class Reproducer(Trainer):
    """Trains and tests; on request only finds out how long a step takes."""

    def answer(self, task: dict[str, Any]) -> dict[str, Any]:
        """Trains, checks or, given `measure_seconds`, measures a recipe."""
        if "measure_seconds" not in task:
            return super().answer(task)
        try:
            recipe = make_recipe(task["recipe"])
            return self._measure(recipe, task["measure_seconds"])
        except Exception as trouble:  # a reason for the row's table
            return failure(trouble)

    def _measure(self, recipe, seconds):
        loop = self.loop(dataclasses.replace(recipe, epochs=_ENDLESS), None)
        self._clock.stop_after(seconds, loop)
        loop.run()
        if not self._clock.is_over:
            return {"stopped": True}
        return {
            "seconds_per_step": self._clock.seconds_per_step,
            "steps": loop.steps,
        }

    def callbacks(
        self, recipe: Recipe, folder: RunFolder | None
    ) -> list[keras.callbacks.Callback]:
        """Watches time, memory and routing."""
        self._clock = _StoppingClock()
        self._dynamics = folder and RoutingDynamics(recipe.epochs, folder)
        return [self._clock] + ([self._dynamics] if folder else [])

    def loop(self, recipe: Recipe, folder: RunFolder | None) -> Loop:
        """Returns the loop, with images for the routing to be watched on."""
        loop = super().loop(recipe, folder)
        if folder:
            self._dynamics.split = loop.validation
        return loop

    def result(self, loop: Loop) -> dict[str, Any]:
        """Tests, leaves a finished run, and returns what it gave."""
        refuse_bad_weights(loop.model)
        draw_curves(loop.state.history, loop.folder.curves)
        # Before the test, which takes its own time and memory.
        measured = {
            "seconds_per_step": self._clock.seconds_per_step,
            "peak_memory_bytes": self._clock.peak_memory,
            "machine": machine.describe(),
            "load_per_core": round(machine.load_per_core(), 2),
            "train_images": loop.train.num_examples,
            "final_loss": loop.state.history[-1]["loss"],
            "train_error": loop.state.history[-1]["error"],
        }
        return finish_run(loop, loop.folder) | measured | _entries(loop)


def _entries(loop):
    """Over how many entries capsules of a class differ, mean over classes."""
    if loop.recipe.network().scores != "lengths":
        return {}
    model, classes = loop.single_model(), len(loop.dataset.class_names)
    winners = read_winners(model, loop.validation, loop.recipe.augmentation)
    found = [n for n in entries_by_class(winners, classes) if n is not None]
    return {"entries_in_use": statistics.fmean(found) if found else None}


class _StoppingClock(StepClock):
    """A clock that can end the run it watches."""

    is_over = False
    _loop = None

    def stop_after(self, seconds: float, loop: Loop) -> None:
        """Ends the loop when its steps took that long, after a least number."""
        self._seconds, self._loop = seconds, loop

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._loop and self.steps >= _LEAST_STEPS:
            done = self.steps * self.seconds_per_step
            self.is_over = done >= self._seconds
            self._loop.stopping |= self.is_over
