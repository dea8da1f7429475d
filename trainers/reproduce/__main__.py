"""Runs the paper's tables and figures: `python -m trainers.reproduce --help`.

    python -m trainers.reproduce --experiment=table1 --dataset=mnist --minutes=7

trains every row of table 1 for seven minutes, with three seeds, and sets our
errors beside the paper's. Every run is an ordinary run folder. The same
command goes on where it stopped; rows and seeds may be added later.
"""

import dataclasses
import pathlib
import shlex
import sys

import tensorflow as tf
from absl import flags

from trainers import cli
from trainers.files import locked
from trainers.recipe import Recipe
from trainers.reproduce import report
from trainers.reproduce.child import COMMAND
from trainers.reproduce.experiments import EXPERIMENTS, PAPER_BUDGET
from trainers.reproduce.reproduction import Reproduction, data_name
from trainers.runs.child import RESULT, Child, read_result

# The share of a run's time that is spent beforehand on timing its steps, and
# the least and most of it, in seconds.
_MEASURING = (0.05, 0.5, 30.0)


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags, those of a recipe included."""
    kwargs = {"flag_values": values}
    cli.define_recipe(values)
    flags.DEFINE_string(
        "experiment", None,
        "; ".join(f"{n}: {e.title}" for n, e in EXPERIMENTS.items()), **kwargs,
    )  # fmt: skip
    flags.DEFINE_list("rows", None, "Some rows only, by name.", **kwargs)
    flags.DEFINE_float(
        "minutes", None, "Time for the training steps of each run; or give "
        "--epochs.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "seeds", 3, "Runs of each row, with the seeds --seed, --seed + 1, ….",
        lower_bound=1, **kwargs,
    )  # fmt: skip
    flags.DEFINE_float(
        "narrow", 1.0, "Divide all widths of all networks by this.",
        lower_bound=1.0, **kwargs,
    )  # fmt: skip
    flags.DEFINE_multi_string(
        "set", [], "A recipe field of one row, ROW.FIELD=VALUE, repeatable: "
        "--set=a.batch_size=8.", **kwargs,
    )  # fmt: skip
    flags.DEFINE_string(
        "out", None, "Folder of the experiment; default: "
        "runs/reproduce/EXPERIMENT-DATA.", **kwargs,
    )  # fmt: skip


def main(arguments: list[str]) -> int:
    """Runs an experiment, and says what came out and was written where."""
    cli.take_no_arguments(arguments)
    # The processes that train need them.
    tf.config.set_visible_devices([], "GPU")
    cli.interrupt_on_sigterm()
    reproduction = from_flags(flags.FLAGS)
    child = Child(COMMAND)
    try:
        return run(reproduction, child)
    except KeyboardInterrupt:
        print(
            f"Stopped; the same command goes on. Folder: {reproduction.path}",
            flush=True,
        )
        return 0
    finally:
        child.close()


def from_flags(values: flags.FlagValues) -> Reproduction:
    """Returns what the flags ask for."""
    if values.experiment not in EXPERIMENTS:
        raise ValueError(
            f"--experiment must be one of {', '.join(EXPERIMENTS)}. "
            f"Received: --experiment={values.experiment}."
        )
    given = cli.given_fields(values)
    given.setdefault("dataset", Recipe.dataset)
    _check_budget(values, given)
    name = f"{values.experiment}-{data_name(given['dataset'])}"
    out = values.out or pathlib.Path("runs") / "reproduce" / name
    rows = _chosen_rows(values)
    return Reproduction(
        pathlib.Path(out),
        values.experiment,
        rows,
        given,
        _row_fields(values["set"].value, [row.name for row in rows]),
        values.narrow,
        values.minutes,
        values.seeds,
        shlex.join(["python", "-m", "trainers.reproduce", *sys.argv[1:]]),
    )


def _check_budget(values, given):
    if values.minutes is None and "epochs" not in given:
        raise ValueError(
            "A budget for each run is needed, --epochs or --minutes. "
            f"Received: neither. The paper has {PAPER_BUDGET}; a few minutes "
            "compare orders, not numbers."
        )
    if values.minutes is None:
        return
    if values.minutes <= 0:
        raise ValueError(
            f"--minutes must be > 0. Received: --minutes={values.minutes}."
        )
    if "epochs" in given or "steps_per_epoch" in given:
        raise ValueError(
            "The budget is either time or steps. Received: --minutes and "
            "--epochs or --steps_per_epoch."
        )


def _chosen_rows(values):
    rows = {row.name: row for row in EXPERIMENTS[values.experiment].rows}
    chosen = values.rows or list(rows)
    unknown = [name for name in chosen if name not in rows]
    if unknown:
        raise ValueError(
            f"--rows must be some of {', '.join(rows)}. "
            f"Received: {', '.join(unknown)}."
        )
    return tuple(row for name, row in rows.items() if name in chosen)


def _row_fields(texts, names):
    """Reads `--set`."""
    known = {f.name for f in dataclasses.fields(Recipe)}
    known -= {"variant", "override", "epochs", "steps_per_epoch", "seed"}
    found = {}
    for text in texts:
        row, dot, rest = text.partition(".")
        fields = cli.parse_overrides([rest]) if dot and rest else {}
        if row not in names or not fields or set(fields) - known:
            raise ValueError(
                "--set takes ROW.FIELD=VALUE, a row that is run and a field "
                f"of its recipe. Received: --set={text}. Rows: "
                f"{', '.join(names)}; fields: {', '.join(sorted(known))}."
            )
        found.setdefault(row, {}).update(fields)
    return found


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
    with locked(
        reproduction.path,
        "Another process runs an experiment in this folder. "
        f"Received: --out={reproduction.path}.",
    ):
        reproduction.save_settings()
        _announce(reproduction)
        runs = [
            (row, seed)
            for seed in reproduction.all_seeds
            for row in reproduction.rows
        ]
        for number, (row, seed) in enumerate(runs, start=1):
            if read_result(reproduction.folder(row, seed)) is None:
                _run_row(reproduction, child, row, seed)
                report.write(reproduction)
            text = report.line(reproduction, row, seed)
            print(f"[{number}/{len(runs)}] {text}", flush=True)
        return _finish(reproduction)


def _run_row(reproduction, child, row, seed):
    folder = reproduction.folder(row, seed)
    if reproduction.plan(row) is None:
        measured = _measure(reproduction, child, row)
        if "failed" in measured:
            folder.write_json(folder.path / RESULT, measured)
            return
        reproduction.save_plan(row, **measured)
    # Each run has a process of its own: its memory is that of the row.
    child.run(reproduction.planned_recipe(row, seed), folder)
    child.close()


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
    each = f"{reproduction.given.get('epochs')} epochs"
    total = ""
    if reproduction.minutes:
        each = f"{reproduction.minutes:g} minutes"
        parts = sum(row.budget for row in reproduction.rows) * seeds
        hours = parts * reproduction.minutes / 60
        total = f", {hours:.1f} hours in all and somewhat more"
    print(
        f"{reproduction.experiment.title}, on "
        f"{reproduction.given['dataset']}: {rows} rows, {seeds} runs each, "
        f"{each} a run{total} (the paper: {PAPER_BUDGET}).\n"
        f"Folder: {reproduction.path}",
        flush=True,
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


if __name__ == "__main__":
    define()
    flags.adopt_module_key_flags(cli)
    cli.run(main)
