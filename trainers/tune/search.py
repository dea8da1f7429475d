"""Running a search: alone, as the chief of several workers, or as a worker."""

import os
import sys
from collections.abc import Sequence

import grpc

from trainers import cli, stopping
from trainers.files import locked
from trainers.runs.child import Child, worker_command
from trainers.tune import report
from trainers.tune.keras_tuner_loop import ChildTuner
from trainers.tune.keras_tuner_oracles import make_oracle
from trainers.tune.trials import Search

_VARIABLES = (
    "KERASTUNER_TUNER_ID",
    "KERASTUNER_ORACLE_IP",
    "KERASTUNER_ORACLE_PORT",
)


WORKER = "trainers.study.trainer:Trainer"


def search_in_child(
    search: Search, *, overwrite: bool = False, log: Sequence[str] = ()
) -> int:
    """Searches in the role that keras-tuner's variables give this process.

    Args:
        search: What to do.
        overwrite: Whether to remove an earlier search first.
        log: Where the numbers of its runs go besides, of
            `trainers.choices.LOGS`.

    Returns:
        The exit code.
    """
    child = Child(worker_command(WORKER), log)
    try:
        if role() == "worker":
            return work(search, child)
        return run(search, child, overwrite=overwrite)
    except KeyboardInterrupt as stop:
        print(
            f"Stopped; the same command goes on, with --tune_dir={search.path}",
            flush=True,
        )
        return stopping.exit_code(stop)
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
        report.write(search, search.outcomes(oracle))
        outcome = search.outcome(oracle.trials[ended[-1]])
        count = f"{len(set(oracle.end_order))}/{oracle.max_trials or '…'}"
        print(f"[{count}] {report.line(outcome)}", flush=True)

    oracle = _oracle(search, after_trial)
    if not overwrite:
        search.refuse_other_settings()
    if overwrite or not search.oracle.exists():
        child.check(search.recipe)
    if role() == "chief":
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
        ChildTuner(oracle, search, child).search()
        return _finish(search, oracle, ended)


def work(search: Search, child: Child) -> int:
    """Runs trials that the chief hands out."""
    tuner = ChildTuner(_oracle(search, lambda oracle: None), search, child)
    # Waits for the chief, who notes the settings first.
    tuner.oracle.get_space()
    search.refuse_other_settings()
    tuner.search()
    return 0


def role() -> str:
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


def _announce(search, oracle):
    recipe = search.recipe
    total = oracle.max_trials or "hyperband's"
    each = cli.epochs(recipe.epochs)
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
    report.write(search, outcomes)
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
    print(report.table(outcomes))
    if not report.ranking(outcomes):
        print("error: No trial was completed.", file=sys.stderr)
        return 1
    print(report.verdict(outcomes))
    for path in (search.table, search.picture, search.best):
        print(f"  {path}")
    print(f"Train the best and test it: trainers.fit --config={search.best}")
    return 0
