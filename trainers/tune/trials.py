"""A search: what it is asked to do, its files, and what its trials gave."""

import dataclasses
import json
import pathlib
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainers.files import write_json
from trainers.recipe import Recipe
from trainers.runs.folder import RunFolder, read_result
from trainers.stored_recipe import changes, differences
from trainers.study.outcome import Outcome
from trainers.tune import space
from trainers.tune.axes import Axis

if TYPE_CHECKING:
    import keras_tuner as kt

# When this many trials fail alike before any succeeds, the setup is wrong.
HOPELESS = 3
_STATUS = {"COMPLETED": "completed", "FAILED": "failed"}


@dataclass(frozen=True, kw_only=True)
class TrialOutcome(Outcome):
    """What a trial gave.

    Attributes:
        trial: Its number.
        status: "completed", "failed" or "running".
        values: The value of each axis.
    """

    trial: str
    status: str
    values: dict[str, Any]

    def error_of(self, result: dict[str, Any]) -> float:
        """The validation error."""
        return result["validation_error"]

    @property
    def images(self) -> int:
        """The validation images: every seed has its own."""
        return sum(self.all_of("validation_images"))

    @property
    def seconds(self) -> float:
        """Time spent in training."""
        return sum(self.all_of("seconds"))


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
        results = {
            recipe.seed: read_result(self.folder(trial.trial_id, recipe))
            for recipe in recipes
        }
        return TrialOutcome(
            trial=trial.trial_id,
            status=_STATUS.get(trial.status, "running"),
            values={axis.name: values[axis.name] for axis in self.axes},
            recipe=recipes[0],
            results={s: r for s, r in results.items() if r is not None},
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
