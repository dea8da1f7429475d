"""What trains the runs of a study, one after the other, in a `Child`."""

import gc
from typing import Any

import keras
import numpy as np

from encapnet_tf.data import load
from trainers.files import write_json
from trainers.recipe import Recipe, make_recipe
from trainers.runs.agreement import agreement_losses
from trainers.runs.finished import start_from
from trainers.runs.folder import RunFolder
from trainers.training.divergence import Diverged
from trainers.training.logs.trackers import Trackers
from trainers.training.loop import Loop


class Trainer:
    """Trains in this process; keeps the data set for the next run."""

    def __init__(self):
        self._loaded = None

    def answer(self, task: dict[str, Any]) -> dict[str, Any]:
        """Trains a recipe in `run_dir`; without one, checks the recipe."""
        try:
            if "run_dir" not in task:
                return self._check(task["recipe"])
            folder = RunFolder(task["run_dir"])
            with folder.locked():
                recipe = make_recipe(task["recipe"])
                return self._run(recipe, folder, task.get("log", ()))
        finally:
            keras.backend.clear_session()
            gc.collect()

    def _check(self, fields):
        try:
            self.loop(make_recipe(fields), None)
        except (ValueError, OSError) as refusal:
            return {"refusal": str(refusal)}
        return {}

    def _run(self, recipe, folder, log):
        recipe.save(folder.config)
        try:
            trackers = Trackers(log, recipe, folder)
        except ValueError as refusal:
            return {"refusal": str(refusal)}
        try:
            loop = self.loop(recipe, folder)
            loop.logs.append(trackers)
            if not loop.run():
                return {"stopped": True}
            result = self.result(loop)
            trackers.end(result, [f for f in folder.files() if f.exists()])
        except Exception as trouble:  # whatever it was, the program goes on
            result = failure(trouble)
        finally:
            trackers.end()
        write_json(folder.result, result)
        folder.clean_checkpoints()
        return result

    def loop(self, recipe: Recipe, folder: RunFolder | None) -> Loop:
        """Returns the loop of a recipe, ready to run."""
        loop = Loop(
            recipe,
            self._dataset(recipe),
            folder,
            callbacks=self.callbacks(recipe, folder),
            quiet=True,
        )
        if recipe.init_from:
            start_from(loop.model, recipe.init_from)
        return loop

    def callbacks(
        self, recipe: Recipe, folder: RunFolder | None
    ) -> list[keras.callbacks.Callback]:
        """Returns what watches a run."""
        return []

    def result(self, loop: Loop) -> dict[str, Any]:
        """Returns what a finished run gave."""
        return validation_result(loop)

    def _dataset(self, recipe):
        key = (recipe.dataset, recipe.data_dir, recipe.image_size)
        if self._loaded is None or self._loaded[0] != key:
            name, data_dir, image_size = key
            self._loaded = key, load(name, data_dir, image_size=image_size)
        return self._loaded[1]


def validation_result(loop: Loop) -> dict[str, Any]:
    """Says what a finished run gave on the data it was selected on."""
    refuse_bad_weights(loop.model)
    history = loop.state.history
    losses = agreement_losses(history[-1]).values()
    return {
        "validation_error": loop.validation_error,
        "validation_images": loop.validation.num_examples,
        "agreement_loss": sum(losses) if losses else None,
        "epochs": len(history),
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def refuse_bad_weights(model: keras.Model) -> None:
    """NaN scores all name class 0, which could look good."""
    if not all(np.isfinite(w).all() for w in model.get_weights()):
        raise Diverged("The last step left weights that are no numbers.")


def failure(trouble: Exception) -> dict[str, Any]:
    """Says why a run failed."""
    if isinstance(trouble, Diverged):
        return {"failed": "diverged", "reason": trouble.finding}
    kind = type(trouble).__name__
    lines = str(trouble).strip().splitlines() or ["no message"]
    return {"failed": kind, "reason": f"{kind}: {lines[0]}"}
