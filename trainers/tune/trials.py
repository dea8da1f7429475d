"""A search: what it is asked to do, its files, and what its trials gave."""

import dataclasses
import json
import math
import pathlib
import shutil
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainers.files import write_json
from trainers.recipe import Recipe, changes, differences
from trainers.runs.folder import RunFolder, read_result
from trainers.tune import space
from trainers.tune.axes import Axis

if TYPE_CHECKING:
    import keras_tuner as kt

# When this many trials fail alike before any succeeds, the setup is wrong.
HOPELESS = 3
_STATUS = {"COMPLETED": "completed", "FAILED": "failed"}


@dataclass(frozen=True)
class TrialOutcome:
    """What a trial gave.

    Attributes:
        trial: Its number.
        status: "completed", "failed" or "running".
        values: The value of each axis.
        recipe: That of the first execution.
        results: One per execution that is over.
    """

    trial: str
    status: str
    values: dict[str, Any]
    recipe: Recipe
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def errors(self) -> list[float]:
        """The validation error of each execution that has one."""
        return self._all("validation_error")

    @property
    def error(self) -> float:
        """The mean over the executions; infinite unless completed."""
        if self.status != "completed":
            return math.inf
        return statistics.fmean(self.errors)

    @property
    def spread(self) -> float | None:
        """The standard deviation over the executions."""
        return statistics.stdev(self.errors) if len(self.errors) > 1 else None

    @property
    def agreement_loss(self) -> float | None:
        """What the agreement units still had to say in the last epoch."""
        losses = self._all("agreement_loss")
        return statistics.fmean(losses) if losses else None

    @property
    def seconds(self) -> float:
        """Time spent in training."""
        return sum(self._all("seconds"))

    @property
    def validation_images(self) -> int:
        """Images behind the error, over all executions."""
        return sum(self._all("validation_images"))

    @property
    def failure(self) -> dict[str, str]:
        """The kind of failure and its reason, where there is one."""
        return next((r for r in self.results if "failed" in r), {})

    def _all(self, name):
        found = (result.get(name) for result in self.results)
        return [value for value in found if value is not None]


@dataclass(frozen=True)
class Search:
    """A search and the folder that holds everything of it.

    Attributes:
        path: The folder.
        recipe: The fixed part; its seed is that of the first execution.
        axes: What is searched.
        tuner: How.
        max_trials: How many trials at most, or None.
        executions: Runs of each trial, with consecutive seeds.
    """

    path: pathlib.Path
    recipe: Recipe
    axes: list[Axis]
    tuner: str
    max_trials: int | None
    executions: int

    def __post_init__(self):
        """Names the files."""
        for name, file in (
            ("settings", "search.json"),
            ("oracle", "oracle.json"),
            ("trials", "trials"),
            ("table", "trials.csv"),
            ("best", "best.json"),
            ("picture", "landscape.png"),
        ):
            object.__setattr__(self, name, self.path / file)

    def clear(self) -> None:
        """Removes an earlier search, and nothing else."""
        shutil.rmtree(self.trials, ignore_errors=True)
        for path in (self.oracle, self.table, self.best, self.picture,
                     self.settings):  # fmt: skip
            path.unlink(missing_ok=True)

    def save_settings(self) -> None:
        """Records what the search was asked to do."""
        content = self._settings() | {"recipe": dataclasses.asdict(self.recipe)}
        write_json(self.settings, content)

    def refuse_other_settings(self) -> None:
        """A folder belongs to one search; only the trials may become more."""
        if not self.settings.exists():
            return
        stored = json.loads(self.settings.read_text())
        wanted = self._settings()
        if self.tuner != "grid":
            del wanted["max_trials"]
        changed = differences(stored.pop("recipe"), self.recipe)
        changed += changes(stored, wanted)
        if changed:
            raise ValueError(
                f"The search in {self.path} is another one: "
                f"{'; '.join(changed)}. Give its own flags to go on, another "
                "--tune_dir, or --overwrite to start anew."
            )

    def _settings(self):
        return {
            "search": [str(axis) for axis in self.axes],
            "tuner": self.tuner,
            "max_trials": self.max_trials,
            "executions_per_trial": self.executions,
        }

    def recipes(self, values: dict[str, Any]) -> list[Recipe]:
        """Returns the recipe of each execution of a trial."""
        recipe = space.apply(self.recipe, self.axes, values)
        # Hyperband: a run of its own length, from the start, not a longer
        # one's beginning, so that any trial can be repeated alone.
        epochs = values.get("tuner/epochs", recipe.epochs)
        return [
            dataclasses.replace(recipe, epochs=epochs, seed=recipe.seed + turn)
            for turn in range(self.executions)
        ]

    def folder(self, trial: str, recipe: Recipe) -> RunFolder:
        """Returns where an execution of a trial is run."""
        return RunFolder(self.trials / trial / f"seed{recipe.seed}")

    def outcome(self, trial: "kt.engine.trial.Trial") -> TrialOutcome:
        """Returns what a trial has given so far."""
        values = trial.hyperparameters.values
        recipes = self.recipes(values)
        results = [
            read_result(self.folder(trial.trial_id, recipe))
            for recipe in recipes
        ]
        return TrialOutcome(
            trial.trial_id,
            _STATUS.get(trial.status, "running"),
            {axis.name: values[axis.name] for axis in self.axes},
            recipes[0],
            [result for result in results if result is not None],
        )

    def outcomes(self, oracle: "kt.Oracle") -> list[TrialOutcome]:
        """Returns what all trials have given, in the order of their start."""
        trials = (oracle.trials[name] for name in oracle.start_order)
        return [self.outcome(trial) for trial in trials]

    def is_hopeless(self, oracle: "kt.Oracle") -> bool:
        """Whether all trials so far failed, and all in the same way."""
        ended = {name: oracle.trials[name] for name in oracle.end_order}
        if len(ended) < HOPELESS or any(
            trial.status != "FAILED" for trial in ended.values()
        ):
            return False
        kinds = {self.outcome(t).failure["failed"] for t in ended.values()}
        return len(kinds) == 1
