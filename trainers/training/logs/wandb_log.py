"""The numbers of a run for Weights & Biases."""

import dataclasses
import os
import pathlib
from collections.abc import Sequence

import wandb

from trainers.recipe import Recipe
from trainers.runs.folder import RunFolder
from trainers.training.logs.tracker import Row, numbers


class WandbLog:
    """A run of Weights & Biases; with WANDB_MODE=offline, in the run's folder.

    Its project is WANDB_PROJECT, or else "encapnet".

    Args:
        recipe: Becomes its config.
        folder: Names it, and holds its files unless WANDB_DIR does.
        run_id: Of the run to go on with, or None.

    Attributes:
        id: The run's.
    """

    def __init__(self, recipe: Recipe, folder: RunFolder, run_id: str | None):
        self._folder = folder
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "encapnet"),
            dir=os.environ.get("WANDB_DIR", str(folder.path)),
            name=str(folder.path),
            id=run_id,
            resume="allow",
            config=dataclasses.asdict(recipe),
            settings=wandb.Settings(console="off", quiet=True),
        )
        self.id = self._run.id

    def write(self, row: Row) -> None:
        """Logs the row; the step is the epoch."""
        self._run.log(row, step=row["epoch"])

    def end(self, summary: Row | None, files: Sequence[pathlib.Path]) -> None:
        """Logs what came out, keeps the files, and ends the run."""
        if summary is not None:
            self._run.summary.update(numbers(summary))
            for file in files:
                self._run.save(file, base_path=self._folder.path, policy="now")
        self._run.finish(exit_code=0 if summary is not None else 1)
