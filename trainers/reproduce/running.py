"""Runs an experiment: row after row, seed after seed, each in a `Child`."""

import dataclasses
import math
import sys
from collections.abc import Sequence

from trainers import cli, stopping
from trainers.files import owned, write_json
from trainers.reproduce import report
from trainers.reproduce.experiments import PAPER_BUDGET
from trainers.reproduce.folder import Reproduction
from trainers.runs.child import Child, worker_command
from trainers.runs.folder import read_result

WORKER = "trainers.reproduce.reproducer:Reproducer"
# The share of a run's time that is spent beforehand on timing its steps, and
# the least and most of it, in seconds.
_MEASURING = (0.05, 0.5, 30.0)


def reproduce(reproduction: Reproduction, log: Sequence[str] = ()) -> int:
    """Runs an experiment, and says what came out and was written where.

    Args:
        reproduction: What to run.
        log: Where the numbers of its runs go besides, of
            `trainers.choices.LOGS`.

    Returns:
        The exit code.
    """
    child = Child(worker_command(WORKER), log)
    try:
        return run(reproduction, child)
    except KeyboardInterrupt as stop:
        print(
            f"Stopped; the same command goes on. Folder: {reproduction.path}",
            flush=True,
        )
        return stopping.exit_code(stop)
    finally:
        child.close()


def run(reproduction: Reproduction, child: Child) -> int:
    """Runs an experiment to its end.

    Args:
        reproduction: What to run.
        child: The process that trains; closed after every run.

    Returns:
        The exit code.
    """
    reproduction.refuse_other_settings()
    if not reproduction.settings.exists():
        child.check(reproduction.recipe(reproduction.rows[0]))
        child.close()
    reproduction.save_settings()
    _announce(reproduction)
    runs = [
        (row, seed)
        for seed in reproduction.all_seeds
        for row in reproduction.rows
    ]
    elsewhere = 0
    for number, (row, seed) in enumerate(runs, start=1):
        with owned(reproduction.path / row.name) as is_free:
            if not is_free:
                elsewhere += 1
                continue
            if read_result(reproduction.folder(row, seed)) is None:
                _run_row(reproduction, child, row, seed)
                report.write(reproduction)
        text = report.line(reproduction, row, seed)
        print(f"[{number}/{len(runs)}] {text}", flush=True)
    if elsewhere:
        print(f"Left to other processes in this folder: {elsewhere} runs.")
    return _finish(reproduction)


def _run_row(reproduction, child, row, seed):
    folder = reproduction.folder(row, seed)
    if reproduction.plan(row) is None:
        measured = _measure(reproduction, child, row)
        if "failed" in measured:
            write_json(folder.result, measured)
            return
        reproduction.save_plan(row, **measured)
    if reproduction.rates and reproduction.rate(row) is None:
        _choose_rate(reproduction, child, row)
        if read_result(folder) is not None:
            return
    _train(child, reproduction.planned_recipe(row, seed), folder)


def _train(child, recipe, folder):
    """Trains in a process of its own: its memory is that of the row."""
    result = child.run(recipe, folder)
    child.close()
    return result


def _choose_rate(reproduction, child, row):
    """Tries the learning rates with the first seed; the best run is its."""
    first = reproduction.all_seeds[0]
    errors = {}
    for rate in reproduction.rates:
        folder = reproduction.tried(row, rate)
        recipe = reproduction.planned_recipe(row, first, rate)
        result = _train(child, recipe, folder)
        error = errors[rate] = result.get("validation_error", math.inf)
        print(
            f"row {row.name}, learning rate {rate:g}: validation error "
            f"{error:.2%}",
            flush=True,
        )
    best = reproduction.choose_rate(row, errors)
    reproduction.tried(row, best).path.replace(
        reproduction.folder(row, first).path
    )


def _measure(reproduction, child, row):
    """Asks how long a step of a row takes."""
    share, least, most = _MEASURING
    seconds = 60 * reproduction.minutes * share
    task = {
        "recipe": dataclasses.asdict(reproduction.recipe(row)),
        "measure_seconds": min(most, max(least, seconds)),
    }
    reply = child.ask(task)
    if reply is None:
        reply = {"failed": "died", "reason": child.cause()}
    child.close()
    return reply


def _announce(reproduction):
    rows, seeds = len(reproduction.rows), reproduction.seeds
    total = ""
    if reproduction.minutes:
        each = f"{reproduction.minutes:g} minutes"
        parts = sum(row.budget for row in reproduction.rows) * seeds
        total = f", {_duration(parts * reproduction.minutes)} in all and "
        total += "somewhat more"
    else:
        each = cli.epochs(reproduction.given["epochs"])
    print(
        f"{reproduction.experiment.title}, on "
        f"{reproduction.given['dataset']}: {rows} rows, {seeds} runs each, "
        f"{each} a run{total} (the paper: {PAPER_BUDGET}).\n"
        f"Folder: {reproduction.path}",
        flush=True,
    )


def _duration(minutes):
    return (
        f"{minutes / 60:.1f} hours" if minutes >= 60 else f"{minutes:g} minutes"
    )


def _finish(reproduction) -> int:
    report.write(reproduction)
    print(report.table(reproduction))
    if all(o.error is None for o in reproduction.outcomes()):
        print("error: No run came to an end.", file=sys.stderr)
        return 1
    print(report.verdict(reproduction))
    for path in (reproduction.report, reproduction.table, reproduction.errors,
                 reproduction.figure):  # fmt: skip
        if path.exists():
            print(f"  {path}")
    return 0
