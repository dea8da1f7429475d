"""What is borrowed from inside keras-tuner's oracles: who chooses values."""

import json
import pathlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import keras_tuner as kt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from trainers.files import written_atomically
from trainers.recipe import Recipe
from trainers.tune import space as tune_space
from trainers.tune.axes import Axis

OBJECTIVE = "validation_error"


class _Lasting:
    """What the oracles have in common.

    keras-tuner keeps its state in several files, none written atomically: a
    kill in between loses a trial, or leaves a file that cannot be read. Here
    it is one file, always whole.

    Args:
        path: The file.
        axes: What is searched.
        is_hopeless: Whether the trials that ended make more of them useless.
        after_trial: Called whenever a trial has ended. Both get this oracle.
        **options: What keras-tuner's oracle takes.
    """

    def __init__(
        self,
        path: pathlib.Path,
        axes: Sequence[Axis],
        is_hopeless: Callable[[kt.Oracle], bool],
        after_trial: Callable[[kt.Oracle], None],
        **options,
    ):
        super().__init__(
            objective=kt.Objective(OBJECTIVE, "min"),
            # A failure would come again, and must not end the search.
            max_retries_per_trial=0,
            max_consecutive_failed_trials=float("inf"),
            allow_new_entries=False,
            **options,
        )
        self.path = path
        self.verbose = 0
        self._axes = {axis.name: axis for axis in axes}
        self._is_hopeless = is_hopeless
        self._after_trial = after_trial

    def populate_space(self, trial_id):
        """Chooses the values of the next trial, never the same twice."""
        if self._is_hopeless(self):
            return {"status": "STOPPED"}
        response = super().populate_space(trial_id)
        values = self._rounded(response.get("values"))
        # A promotion by hyperband repeats values on purpose.
        if values and "tuner/epochs" not in values and self._duplicate(values):
            values = self._rounded(self._random_values())
            response["status"] = "RUNNING" if values else "STOPPED"
        return response | {"values": values}

    def _rounded(self, values):
        return values and {
            name: self._axes[name].rounded(value)
            if name in self._axes
            else value
            for name, value in values.items()
        }

    def _random_values(self):
        """The first trial has the recipe's own values."""
        if self.trials:
            return super()._random_values()
        return {hp.name: hp.default for hp in self.hyperparameters.space}

    @kt.synchronized
    def end_trial(self, trial):
        super().end_trial(trial)
        # Once more: keras-tuner saves before it notes that a trial has ended.
        self.save()
        self._after_trial(self)

    def get_state(self):
        trials = {name: t.get_state() for name, t in self.trials.items()}
        return super().get_state() | {"trials": trials}

    def set_state(self, state):
        load = kt.engine.trial.Trial.from_state
        self.trials = {n: load(t) for n, t in state["trials"].items()}
        super().set_state(state)

    def save(self):
        with written_atomically(self.path) as temporary:
            temporary.write_text(json.dumps(self.get_state()))

    def _save_trial(self, trial):
        """Trials are part of the state."""

    def reload(self):
        """Takes up a search; what was under way is tried again first."""
        self.set_state(json.loads(self.path.read_text()))
        self._retry_queue += [
            trial.trial_id for trial in self.ongoing_trials.values()
        ]
        self.ongoing_trials = {}


class _Random(_Lasting, kt.oracles.RandomSearchOracle):
    """Values drawn at random."""


class _Bayesian(_Lasting, kt.oracles.BayesianOptimizationOracle):
    """Values where a Gaussian process expects, or knows least, to gain."""

    def populate_space(self, trial_id):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().populate_space(trial_id)

    def _vectorize_trials(self):
        """A failed trial counts as the worst, or it would be proposed again."""
        points, scores = super()._vectorize_trials()
        failed = [
            [
                hp.value_to_prob(trial.hyperparameters.values[hp.name])
                for hp in self._nonfixed_space()
            ]
            for trial in self.trials.values()
            if trial.status == "FAILED"
        ]
        if failed:
            points = np.concatenate([points, failed])
            scores = np.append(scores, [scores.max()] * len(failed))
        return points, scores


class _Hyperband(_Lasting, kt.oracles.HyperbandOracle):
    """Many short runs, then longer ones of the best."""

    def __init__(self, max_trials: int | None, **options):
        super().__init__(**options)
        self.max_trials = max_trials


class _Points(kt.Oracle):
    """Point after point. keras-tuner's own grid forgets where it stood."""

    def __init__(self, points: list[dict[str, Any]], **options):
        super().__init__(max_trials=len(points), **options)
        self._points = points

    def populate_space(self, trial_id):
        return {"status": "RUNNING", "values": self._points[int(trial_id)]}


class _Grid(_Lasting, _Points):
    """The points of an even grid."""


DEFAULT_TRIALS = 12


def make_oracle(
    tuner: str,
    recipe: Recipe,
    axes: Sequence[Axis],
    max_trials: int | None,
    **options: Any,
) -> kt.Oracle:
    """Returns the oracle that chooses the values of the trials.

    Args:
        tuner: One of `choices.TUNERS`.
        recipe: Gives the seed, the epochs and the first trial's values.
        axes: What to search.
        max_trials: How many trials at most; None: 12, or for hyperband all
            that its brackets hold.
        **options: What every oracle here takes.
    """
    own = tune_space.defaults(axes, recipe)
    space = kt.HyperParameters()
    space.merge([_hyperparameter(axis, own[axis.name]) for axis in axes])
    # keras-tuner takes a seed of 0 for none.
    options |= {
        "axes": axes,
        "hyperparameters": space,
        "seed": recipe.seed + 1,
    }
    if tuner == "hyperband":
        return _Hyperband(max_trials, max_epochs=recipe.epochs, **options)
    max_trials = max_trials or DEFAULT_TRIALS
    if tuner == "grid":
        points = tune_space.grid(axes, max_trials)
        return _Grid(points=points, **options)
    kind = _Bayesian if tuner == "bayesian" else _Random
    return kind(max_trials=max_trials, **options)


def _hyperparameter(axis: Axis, default: Any):
    """Returns keras-tuner's form of an axis, starting at `default`."""
    kinds = kt.engine.hyperparameters
    if axis.choices:
        return kinds.Choice(axis.name, list(axis.choices), default=default)
    kind = kinds.Int if axis.integer else kinds.Float
    return kind(
        axis.name,
        axis.low,
        axis.high,
        sampling="log" if axis.log else "linear",
        default=min(max(default, axis.low), axis.high),
    )
