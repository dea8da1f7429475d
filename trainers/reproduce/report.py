"""What a reproduction shows: its files after every run, and its words."""

import statistics
from collections.abc import Sequence
from typing import Any

from trainers.files import written_atomically
from trainers.reproduce.experiments import DATA_NAMES, PAPER_BUDGET
from trainers.reproduce.figures import authors_log, plots
from trainers.reproduce.figures.routing_dynamics import read_snapshots
from trainers.reproduce.folder import Reproduction
from trainers.reproduce.outcomes import RowOutcome
from trainers.reproduce.rows import Row
from trainers.reproduce.run_section import about_runs
from trainers.reproduce.sections import (
    about_costs,
    about_order,
    about_others,
    about_questions,
    about_routing,
)
from trainers.runs.folder import read_metrics
from trainers.tables import aligned, markdown, write_csv


def write(reproduction: Reproduction) -> None:
    """Writes `results.csv`, `report.md` and the pictures."""
    outcomes = reproduction.outcomes()
    data = reproduction.paper_data
    write_csv(
        reproduction.table, [_csv_row(reproduction, o, data) for o in outcomes]
    )
    pictures = _draw(reproduction, outcomes, data)
    with written_atomically(reproduction.report) as path:
        path.write_text(_report(reproduction, outcomes, pictures))


def line(reproduction: Reproduction, row: Row, seed: int) -> str:
    """Says in one line how a run ended."""
    outcome = reproduction.outcome(row)
    result = outcome.results[seed]
    head = f"row {row.name}, {row.label}, seed {seed}:"
    if "failed" in result:
        return f"{head} failed: {result['reason']}"
    return (
        f"{head} test error {outcome.errors[seed]:.2%} after "
        f"{result['images_seen']:,} images, "
        f"{result['train_seconds'] / 60:.1f} minutes"
    )


def table(reproduction: Reproduction) -> str:
    """Sets out the rows for a terminal."""
    return aligned(*_cells(reproduction, reproduction.outcomes()))


def verdict(reproduction: Reproduction) -> str:
    """Says what the order of the rows means, and answers the questions."""
    outcomes = reproduction.outcomes()
    parts = (about_questions(reproduction, outcomes),
             about_order(reproduction, outcomes))  # fmt: skip
    return "\n".join(filter(None, parts))


def _csv_row(
    reproduction: Reproduction, outcome: RowOutcome, data: str
) -> dict[str, Any]:
    row, cost, plan = outcome.row, outcome.row.cost, outcome.plan
    found = {
        "row": row.name,
        "label": row.label,
        "variant": outcome.recipe.variant,
        "status": outcome.status,
        "reason": outcome.failure.get("reason"),
        "error": outcome.error,
        "spread": outcome.spread,
    }
    for seed in reproduction.all_seeds:
        found[f"error_seed{seed}"] = outcome.errors.get(seed)
    for name in ("train_error", "test_images", "parameters",
                 "inference_parameters", "images_seen", "train_images",
                 "peak_memory_bytes", "train_seconds",
                 "entries_in_use"):  # fmt: skip
        found[name] = outcome.mean(name)
    return found | {
        "seconds_per_step": outcome.seconds_per_step,
        "batch_size": outcome.recipe.batch_size,
        "learning_rate": outcome.recipe.learning_rate,
        "epochs": plan and plan.epochs,
        "steps_per_epoch": plan and plan.steps_per_epoch,
        "paper_data": data,
        "paper_error": row.paper[data] / 100 if data in row.paper else None,
        "paper_note": row.note,
        "paper_size": cost and cost.size,
        "paper_memory_mb": cost and cost.memory,
        "paper_batch_size": cost and cost.batch,
        "paper_seconds_per_batch": cost and cost.seconds,
    }


def _cells(reproduction: Reproduction, outcomes: Sequence[RowOutcome]):
    """The lines of the table, and to which side its columns are set."""
    data = reproduction.paper_data
    heads = (
        "row", "network", "error, %", f"paper, {DATA_NAMES[data]}",
        "training error, %", "parameters", "batch", "images seen", "epochs",
        "ms per step", "peak memory, MiB",
    )  # fmt: skip
    lines = [heads, *(_row_cells(outcome, data) for outcome in outcomes)]
    if all(line[3] == "–" for line in lines[1:]):  # the paper has no numbers
        lines = [(*line[:3], *line[4:]) for line in lines]
    if column := reproduction.experiment.column:
        cells = (column.heading, *(_column_cell(o, column) for o in outcomes))
        lines = [
            (*line[:3], cell, *line[3:])
            for line, cell in zip(lines, cells, strict=True)
        ]
    return lines, "<<" + ">" * (len(lines[0]) - 2)


def _row_cells(outcome: RowOutcome, data: str):
    row = outcome.row
    paper = f"{row.paper[data]:.2f}" if data in row.paper else row.note
    images = outcome.mean("images_seen")
    passes = images and images / outcome.mean("train_images")
    return (
        row.name,
        row.label,
        error_text(outcome),
        paper or "–",
        _number(outcome.mean("train_error"), "{:.2f}", 100),
        _number(outcome.mean("inference_parameters")),
        str(outcome.recipe.batch_size),
        _number(images),
        _number(passes, "{:.3g}"),
        _number(outcome.seconds_per_step, "{:.0f}", 1000),
        _number(outcome.mean("peak_memory_bytes"), factor=2**-20),
    )


def error_text(outcome: RowOutcome) -> str:
    """Writes a row's error, in percent, with its spread over the seeds."""
    if outcome.error is None:
        return outcome.status
    spread = f" ± {100 * outcome.spread:.2f}" if outcome.spread else ""
    return f"{100 * outcome.error:.2f}{spread}"


def _column_cell(outcome, column):
    """Writes what else the runs gave, with its spread over the seeds."""
    found = [column.factor * v for v in outcome.all_of(column.name)]
    if not found:
        return "–"
    spread = f" ± {statistics.stdev(found):.2f}" if len(found) > 1 else ""
    return f"{statistics.fmean(found):.2f}{spread}"


def _number(value, form="{:,.0f}", factor=1):
    return "–" if value is None else form.format(factor * value)


def _draw(reproduction, outcomes, data):
    """Draws what there is; returns names and captions."""
    done = [o for o in outcomes if o.error is not None]
    if not done:
        return {}
    plots.errors(outcomes, data, reproduction.errors)
    pictures = {reproduction.errors.name: "Errors of the rows"}
    first = reproduction.all_seeds[0]
    figure = reproduction.experiment.figure
    if figure == "routing":
        snapshots = {
            o.row.label: read_snapshots(reproduction.folder(o.row, first))
            for o in done
        }
        plots.routing(snapshots, reproduction.figure)
    elif figure == "curve":
        plots.curve(done, reproduction.experiment.axis, reproduction.figure)
    elif figure:
        draw = {"losses": plots.losses, "log": authors_log.draw}[figure]
        draw(_histories(reproduction, done), reproduction.figure)
    if figure:
        pictures[reproduction.figure.name] = reproduction.experiment.title
    return pictures


def _histories(reproduction, outcomes):
    """Rows that were run, each with the `metrics.csv` of every seed."""
    return [
        (o.row, [read_metrics(reproduction.folder(o.row, s)) for s in o.errors])
        for o in outcomes
        if o.error is not None
    ]


def _about_log(reproduction, outcomes):
    if reproduction.experiment.figure != "log":
        return ""
    return authors_log.about_log(_histories(reproduction, outcomes))


def _report(reproduction, outcomes, pictures):
    experiment = reproduction.experiment
    sections = [
        f"# {experiment.title}",
        about_questions(reproduction, outcomes),
        about_runs(reproduction, outcomes),
        markdown(*_cells(reproduction, outcomes)),
        "Error: on the test data, mean ± standard deviation over the seeds. "
        "Parameters: those left at inference. Epochs: images seen by the "
        f"training images; the paper's numbers come from {PAPER_BUDGET}. "
        "Memory: the process that trains, data and TensorFlow included.",
        *(f"![{caption}]({name})" for name, caption in pictures.items()),
        f"## The order\n\n{about_order(reproduction, outcomes)}",
        about_costs(reproduction, outcomes),
        about_routing(reproduction, outcomes),
        _about_log(reproduction, outcomes),
        about_others(experiment),
    ]
    if experiment.notes:
        notes = "\n".join(f"- {note}" for note in experiment.notes)
        sections.append(f"## About the paper's numbers\n\n{notes}")
    return "\n\n".join(filter(None, sections)) + "\n"
