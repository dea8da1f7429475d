"""Measures how fast things are: `python -m trainers.benchmark --help`.

Everything is timed in turn with a matrix product, each network in a process of
its own; medians count, quartiles are the spread. --compare sets the run beside
a stored one and ends with exit code 1 where something became slower.
"""

import dataclasses
import pathlib
import sys
import time
from collections.abc import Callable

import tensorflow as tf
from absl import flags

from trainers import cli, machine
from trainers.benchmark import plots, report
from trainers.benchmark.child import COMMAND
from trainers.benchmark.compare import compare, comparison_text
from trainers.benchmark.growth import fit_growths
from trainers.benchmark.results import (
    Results,
    as_measurement,
    read_results,
    write_results,
)
from trainers.benchmark.tasks import (
    PARTS,
    VARIANTS,
    Settings,
    Task,
    make_tasks,
    name_of,
    product_task,
)
from trainers.runs.child import Child
from trainers.runs.finished import versions
from trainers.tables import write_csv

# Sends a task to whoever measures; returns the answer.
Ask = Callable[[Task], dict]


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_list(
        "variants", list(VARIANTS), "The networks of that part.", **kwargs
    )
    flags.DEFINE_integer(
        "batch",
        64,
        "Images in a step of a network, and in a batch of the pipeline.",
        lower_bound=1,
        **kwargs,
    )
    flags.DEFINE_float(
        "seconds",
        5.0,
        "About how long to time each thing; five rounds at least.",
        lower_bound=0.0,
        **kwargs,
    )
    flags.DEFINE_list(
        "parts",
        list(PARTS),
        "What to measure; all there is by default.",
        **kwargs,
    )
    flags.DEFINE_string(
        "out", None, "Folder of the results; default: a new one in runs/.",
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "compare", None, "A stored benchmark.json to compare with.", **kwargs
    )


def main(
    arguments: list[str],
    values: flags.FlagValues = flags.FLAGS,
    ask: Ask | None = None,
) -> int:
    """Measures, reports, compares; returns the exit code."""
    cli.take_no_arguments(arguments)
    # The processes that measure need them.
    tf.config.set_visible_devices([], "GPU")
    settings = Settings(
        values.variants, values.batch, values.seconds, values.parts
    )
    base = values.compare and read_results(values.compare)
    folder = pathlib.Path(values.out or _new_folder())
    try:
        results, failures = measure(settings, ask or ask_process, folder)
    except KeyboardInterrupt:
        print(f"Stopped; what was measured is in {folder}", flush=True)
        return 1
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
    results = _start(settings, ask)
    print(report.heading(results), flush=True)
    failures = 0
    for number, task in enumerate(tasks, start=1):
        began = time.monotonic()
        answer = ask(task)
        if "failed" in answer:
            failures += 1
            print(
                f"error: Not measured: {name_of(task)}. {answer['reason']}",
                file=sys.stderr,
            )
        found = tuple(map(as_measurement, answer.get("measurements", ())))
        results = dataclasses.replace(
            results, measurements=results.measurements + found
        )
        _write(results, folder)
        spent = f"{time.monotonic() - began:.0f} s"
        print(f"[{number}/{len(tasks)}] {name_of(task)}: {spent}", flush=True)
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
        settings._asdict(),
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


def _new_folder():
    return pathlib.Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-benchmark"


if __name__ == "__main__":
    define()
    cli.run(main)
