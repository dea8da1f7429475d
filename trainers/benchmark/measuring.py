"""A benchmark from its settings to its report: task by task, in a `Child`."""

import dataclasses
import pathlib
import sys
import time
from collections.abc import Callable

from trainers import machine, stopping
from trainers.benchmark import plots, report
from trainers.benchmark.compare import compare, comparison_text
from trainers.benchmark.growth import fit_growths
from trainers.benchmark.results import (
    Results,
    as_measurement,
    write_results,
)
from trainers.benchmark.settings import Settings
from trainers.benchmark.tasks import (
    Task,
    make_tasks,
    name_of,
    product_task,
    seconds_of,
)
from trainers.progress import StageProgress
from trainers.runs.child import Child, worker_command
from trainers.runs.finished import versions
from trainers.tables import write_csv

COMMAND = worker_command("trainers.benchmark.measurer:Measurer")

# Sends a task to whoever measures; returns the answer.
Ask = Callable[[Task], dict]


def measure_and_report(
    settings: Settings,
    folder: pathlib.Path,
    base: Results | None = None,
    ask: Ask | None = None,
) -> int:
    """Measures, and says what came out and was written where.

    Args:
        settings: What to measure.
        folder: Where the results go.
        base: Earlier results to compare with.
        ask: Has a task measured; by default a process of its own.

    Returns:
        The exit code: 1 where something was not measured, or became slower.
    """
    try:
        results, failures = measure(settings, ask or ask_process, folder)
    except KeyboardInterrupt as stop:
        print(f"Stopped; what was measured is in {folder}", flush=True)
        return stopping.exit_code(stop)
    if results.measurements:
        _report(results, folder)
    slower = False
    if base:
        comparison = compare(base, results)
        print(comparison_text(base, results, comparison))
        slower = comparison.is_slower
    return 1 if slower or failures else 0


def measure(
    settings: Settings, ask: Ask, folder: pathlib.Path
) -> tuple[Results, int]:
    """Measures task by task; leaves what there is after each.

    Args:
        settings: What to measure.
        ask: Has a task measured.
        folder: Where `benchmark.json` goes.

    Returns:
        The results, and how many tasks came to nothing.
    """
    tasks = make_tasks(settings)
    folder.mkdir(parents=True, exist_ok=True)
    first = product_task(settings)
    progress = StageProgress(
        {name_of(t): seconds_of(t) for t in (first, *tasks)}
    )
    failures = 0
    with progress.shown():
        progress.begin(name_of(first))
        results = _start(settings, ask)
        progress.say(report.heading(results))
        for number, task in enumerate(tasks, start=1):
            began, name = time.monotonic(), name_of(task)
            progress.begin(name)
            answer = ask(task)
            if "failed" in answer:
                failures += 1
                reason = f"error: Not measured: {name}. {answer['reason']}"
                progress.say(reason, sys.stderr)
            found = tuple(map(as_measurement, answer.get("measurements", ())))
            results = dataclasses.replace(
                results, measurements=results.measurements + found
            )
            _write(results, folder)
            spent = f"{time.monotonic() - began:.0f} s"
            progress.say(f"[{number}/{len(tasks)}] {name}: {spent}")
    return results, failures


def _start(settings, ask):
    load = machine.load_per_core()
    answer = ask(product_task(settings))
    if "failed" in answer:
        raise ValueError(
            "A matrix product must be possible here. "
            f"Received: {answer['reason']}."
        )
    return Results(
        machine.describe(),
        versions(),
        dataclasses.asdict(settings),
        round(load, 2),
        {int(side): tuple(t) for side, t in answer["products"].items()},
    )


def ask_process(task: Task) -> dict:
    """Has a task measured in a process of its own."""
    child = Child(COMMAND)
    try:
        answer = child.ask(task)
        if answer is None:
            return {"failed": "died", "reason": child.cause()}
        return answer
    finally:
        child.close()


def _write(results, folder):
    growth = fit_growths(results.of_part("growth"))
    write_results(
        results,
        folder / "benchmark.json",
        growth={name: fit._asdict() for name, fit in growth.items()},
    )


def _report(results, folder):
    print(f"\n{report.tables(results)}\n")
    table, picture = folder / "benchmark.csv", folder / "benchmark.png"
    write_csv(table, report.csv_rows(results))
    plots.draw(results, picture)
    for path in (folder / "benchmark.json", table, picture):
        print(f"  {path}")
