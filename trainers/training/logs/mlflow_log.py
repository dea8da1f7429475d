"""The numbers of a run for MLflow."""

import dataclasses
import json
import os
import pathlib
import time
from collections.abc import Sequence

from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from trainers.recipe import Recipe
from trainers.runs.folder import RunFolder
from trainers.training.logs.tracker import Row, numbers


class MlflowLog:
    """A run of MLflow, where MLFLOW_TRACKING_URI says.

    Its experiment is MLFLOW_EXPERIMENT_NAME, or else "encapnet".

    Args:
        recipe: Becomes its parameters.
        folder: Names it.
        run_id: Of the run to go on with, or None.

    Attributes:
        id: The run's.
    """

    def __init__(self, recipe: Recipe, folder: RunFolder, run_id: str | None):
        self._client = MlflowClient()
        if run_id is not None:
            self.id = run_id
            self._client.update_run(run_id, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "encapnet")
        found = self._client.get_experiment_by_name(name)
        experiment = (
            found.experiment_id
            if found
            else self._client.create_experiment(name)
        )
        run = self._client.create_run(experiment, run_name=str(folder.path))
        self.id = run.info.run_id
        fields = dataclasses.asdict(recipe) | {"run_dir": str(folder.path)}
        params = [Param(name, _text(value)) for name, value in fields.items()]
        self._client.log_batch(self.id, params=params)

    def write(self, row: Row) -> None:
        """Logs a metric per number; the step is the epoch."""
        self._log(row, row["epoch"])

    def end(self, summary: Row | None, files: Sequence[pathlib.Path]) -> None:
        """Logs what came out, keeps the files, and ends the run."""
        if summary is not None:
            self._log(numbers(summary), summary["epochs"])
            for file in files:
                self._client.log_artifact(self.id, str(file))
        status = "KILLED" if summary is None else "FINISHED"
        self._client.set_terminated(self.id, status)

    def _log(self, values, step):
        now = int(1000 * time.time())
        metrics = [Metric(n, float(v), now, step) for n, v in values.items()]
        self._client.log_batch(self.id, metrics=metrics)


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)
