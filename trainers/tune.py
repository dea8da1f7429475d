"""Searches for the best recipe: `python -m trainers.tune --help`.

With no flags: `encapnet_small` on the built-in `house_numbers`, 12 trials over
the agreement units' λ and ε. Each trial is trained as `trainers.fit` does and
judged on the part of the training data that is set aside; the test data are
never read. The same command on the same --tune_dir goes on where it stopped.
"""

import os
import pathlib
import signal
import statistics
import sys
import time

import grpc
import keras_tuner as kt
import tensorflow as tf
from absl import flags

from trainers import programs, recipe_flags, tune_report, tune_space
from trainers.run_folder import locked
from trainers.tune_child import Child
from trainers.tune_oracles import OBJECTIVE, TUNERS, make_oracle
from trainers.tune_trials import Search

flags.DEFINE_string(
    "tune_dir", None, "The search's folder; default: a new one in runs/."
)
flags.DEFINE_enum(
    "tuner",
    "bayesian",
    TUNERS,
    "How to choose values. bayesian: where a model of the trials so far "
    "expects most; random; grid: evenly, from end to end; hyperband: many "
    "short runs, then longer ones of the best, each trained anew.",
)
flags.DEFINE_list(
    "search",
    "agreement_weight,agreement_epsilon",
    f"What to search, of {'; '.join(map(str, tune_space.AXES.values()))}. "
    "NAME:LOW:HIGH gives another range. The first trial has the recipe's own "
    "values.",
)
flags.DEFINE_integer(
    "max_trials",
    None,
    "Trials at most; a larger number, given later, adds to the search. "
    "Default: 12, or all that hyperband's brackets hold.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "executions_per_trial",
    1,
    "Runs of each trial, with the seeds --seed, --seed + 1, …; their mean "
    "error counts.",
    lower_bound=1,
)
flags.DEFINE_bool("overwrite", False, "Start the search in --tune_dir anew.")

_VARIABLES = (
    "KERASTUNER_TUNER_ID",
    "KERASTUNER_ORACLE_IP",
    "KERASTUNER_ORACLE_PORT",
)


def main(arguments: list[str]) -> int:
    """Searches, and says what was found and written where."""
    programs.take_no_arguments(arguments)
    # The processes that train need them.
    tf.config.set_visible_devices([], "GPU")
    signal.signal(signal.SIGTERM, _interrupt)
    search = _search_from_flags(flags.FLAGS)
    child = Child()
    try:
        if _role() == "worker":
            return _work(search, child)
        return run(search, child, overwrite=flags.FLAGS.overwrite)
    except KeyboardInterrupt:
        print(
            f"Stopped; the same command goes on, with --tune_dir={search.path}",
            flush=True,
        )
        return 0
    except grpc.RpcError as trouble:
        print(
            "error: The chief of the search is gone, so this worker stops. "
            "Start both again with the same flags: they go on. "
            f"({trouble.code().name})",
            file=sys.stderr,
        )
        return 1
    finally:
        child.close()


def _interrupt(*_):
    """Treats SIGTERM as Ctrl-C, once: saving comes next."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _search_from_flags(values) -> Search:
    recipe = recipe_flags.recipe_from_flags(values)
    return Search(
        pathlib.Path(values.tune_dir or _new_tune_dir(recipe)),
        recipe,
        tune_space.parse_axes(values.search),
        values.tuner,
        values.max_trials,
        values.executions_per_trial,
    )


def _new_tune_dir(recipe):
    data = recipe.dataset.partition(":")[0]
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return pathlib.Path("runs") / f"{stamp}-tune-{recipe.variant}-{data}"


def run(search: Search, child: Child, *, overwrite: bool = False) -> int:
    """Runs a search to its end, alone or as the chief of several workers.

    Args:
        search: What to do.
        child: The process that trains.
        overwrite: Whether to remove an earlier search first.

    Returns:
        The exit code.
    """
    ended = []

    def after_trial(oracle):
        ended.append(oracle.end_order[-1])
        tune_report.write(search, search.outcomes(oracle))
        outcome = search.outcome(oracle.trials[ended[-1]])
        count = f"{len(set(oracle.end_order))}/{oracle.max_trials or '…'}"
        print(f"[{count}] {tune_report.line(outcome)}", flush=True)

    oracle = _oracle(search, after_trial)
    if not overwrite:
        search.refuse_other_settings()
    if overwrite or not search.oracle.exists():
        child.check(search.recipe)
    if _role() == "chief":
        child.close()
    with locked(
        search.path,
        "Another process is searching in this folder. "
        f"Received: --tune_dir={search.path}.",
    ):
        if overwrite:
            search.clear()
        search.save_settings()
        if oracle.path.exists():
            oracle.reload()
        _announce(search, oracle)
        _Tuner(oracle, search, child).search()
        return _finish(search, oracle, ended)


def _work(search: Search, child: Child) -> int:
    """Runs trials that the chief hands out."""
    tuner = _Tuner(_oracle(search, lambda oracle: None), search, child)
    # Waits for the chief, who notes the settings first.
    tuner.oracle.get_space()
    search.refuse_other_settings()
    tuner.search()
    return 0


def _role() -> str:
    """What keras-tuner's variables make of this process."""
    given = {n: os.environ[n] for n in _VARIABLES if n in os.environ}
    if 0 < len(given) < len(_VARIABLES):
        raise ValueError(
            f"Workers of a search need {', '.join(_VARIABLES)}. Received: "
            f"only {', '.join(given)}."
        )
    if not given:
        return "alone"
    return "chief" if "chief" in given["KERASTUNER_TUNER_ID"] else "worker"


def _oracle(search, after_trial):
    return make_oracle(
        search.tuner,
        search.recipe,
        search.axes,
        search.max_trials,
        path=search.oracle,
        is_hopeless=search.is_hopeless,
        after_trial=after_trial,
    )


class _Tuner(kt.engine.base_tuner.BaseTuner):
    """Runs trials in a child process.

    Args:
        oracle: Chooses the values.
        search: Says what becomes of them.
        child: Trains.
    """

    def __init__(self, oracle: kt.Oracle, search: Search, child: Child):
        folder = search.path.resolve()
        super().__init__(
            oracle, directory=str(folder.parent), project_name=folder.name
        )
        self._search = search
        self._child = child

    def pre_create_trial(self):
        # An oracle that waits for other trials is asked again and again.
        time.sleep(0.1)

    def run_trial(self, trial):
        errors = []
        for recipe in self._search.recipes(trial.hyperparameters.values):
            folder = self._search.folder(trial.trial_id, recipe)
            result = self._child.run(recipe, folder)
            if "failed" in result:
                raise kt.errors.FailedTrialError(result["reason"])
            errors.append(result["validation_error"])
        return {OBJECTIVE: statistics.fmean(errors)}

    def _try_run_and_update_trial(self, trial):
        """Fails a trial that failed; keras-tuner would also hide our bugs."""
        try:
            self._run_and_update_trial(trial)
            trial.status = "COMPLETED"
        except kt.errors.FailedTrialError:
            trial.status = "FAILED"

    def save(self):
        """The oracle saves itself, and a tuner has nothing else."""


def _announce(search, oracle):
    recipe = search.recipe
    total = oracle.max_trials or "hyperband's"
    each = f"{recipe.epochs} epoch{'s' if recipe.epochs > 1 else ''}"
    if search.executions > 1:
        each = f"{search.executions} runs of {each}"
    print(
        f"{recipe.variant} on {recipe.dataset}: {search.tuner} search over "
        f"{' and '.join(map(str, search.axes))}; {total} trials of {each}.\n"
        f"Search folder: {search.path}",
        flush=True,
    )


def _finish(search, oracle, ended) -> int:
    outcomes = search.outcomes(oracle)
    tune_report.write(search, outcomes)
    if search.is_hopeless(oracle):
        failure = outcomes[0].failure
        print(
            f"error: The first {len(outcomes)} trials all failed alike, so "
            f"the search stops: {failure['reason']} Try other flags, with "
            "--overwrite.",
            file=sys.stderr,
        )
        return 1
    if not ended:
        print(f"This search is finished: {search.path}")
    print(tune_report.table(outcomes))
    if not tune_report.ranking(outcomes):
        print("error: No trial was completed.", file=sys.stderr)
        return 1
    print(tune_report.verdict(outcomes))
    for path in (search.table, search.picture, search.best):
        print(f"  {path}")
    print(f"Train the best and test it: trainers.fit --config={search.best}")
    return 0


if __name__ == "__main__":
    recipe_flags.define()
    flags.adopt_module_key_flags(recipe_flags)
    programs.run(main)
