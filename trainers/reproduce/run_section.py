"""The words of a report on what was run, on what and for how long."""

from collections.abc import Sequence

from trainers.reproduce.experiments import PAPER_BUDGET
from trainers.reproduce.folder import Reproduction
from trainers.reproduce.outcomes import RowOutcome

# Runs whose steps took this much more or less than planned are pointed out.
_TOLERANCE = 0.15
# Above this many waiting processes per core, others were at work as well.
_BUSY = 1.5


def about_runs(
    reproduction: Reproduction, outcomes: Sequence[RowOutcome]
) -> str:
    """Says what was run, on what, for how long."""
    given = reproduction.given
    seeds = ", ".join(map(str, reproduction.all_seeds))
    seeds = f"seed{'s' if reproduction.seeds > 1 else ''} {seeds}"
    lines = [
        f"Data: `{given['dataset']}`{_images(outcomes)}.",
        f"Budget: {budget_text(reproduction)}; {seeds}. The paper's "
        f"numbers: {PAPER_BUDGET}.",
        _common_text(reproduction),
        _rates_text(reproduction, outcomes),
        _machine_text(outcomes),
        _deviations(reproduction, outcomes),
    ]
    lines += [
        f"Row {o.row.name} failed: {o.failure['reason']}"
        for o in outcomes
        if o.failure
    ]
    waiting = [o.row.name for o in outcomes if not o.results]
    if waiting:
        lines.append(f"Not run yet: {', '.join(waiting)}.")
    body = "\n".join(f"- {text}" for text in lines if text)
    if reproduction.command:
        body = f"```bash\n{reproduction.command}\n```\n\n{body}"
    return body


def _images(outcomes):
    train, test = (
        max((o.mean(name) or 0 for o in outcomes), default=0)
        for name in ("train_images", "test_images")
    )
    if not train:
        return ""
    return f", {train:,.0f} training and {test:,.0f} test images"


def budget_text(reproduction: Reproduction) -> str:
    """Says what each run gets."""
    if reproduction.minutes is None:
        epochs = reproduction.given["epochs"]
        text = f"{epochs} epoch{'s' if epochs > 1 else ''} a run"
    else:
        text = (
            f"{reproduction.minutes:g} minutes of training steps a run, "
            "validation and test not counted. Some steps were timed first; "
            "the run then has the number of steps that fit, and its schedule "
            "is made for that number"
        )
    longer = [r for r in reproduction.rows if r.budget != 1]
    for row in longer:
        text += f"; {row.budget:g} times that for row {row.name}"
    return text


def _common_text(reproduction):
    hidden = ("dataset", "data_dir", "epochs", "seed", "override")
    given = reproduction.experiment.fields | reproduction.given
    parts = [f"{n} {v}" for n, v in given.items() if n not in hidden]
    parts += [f"{n} {v}" for n, v in given.get("override", {}).items()]
    if reproduction.narrow != 1:
        parts.append(f"all widths divided by {reproduction.narrow:g}")
    text = "Common to all rows"
    text += f": {', '.join(parts)}; the rest" if parts else ": everything"
    text += " as in the paper's recipe. Each run's `config.json` has it all."
    for name, fields in reproduction.given_rows.items():
        own = ", ".join(f"{n} {v}" for n, v in fields.items())
        text += f" Row {name} alone: {own}."
    return text


def _rates_text(reproduction, outcomes):
    if not reproduction.rates:
        return ""
    tried = ", ".join(f"{rate:g}" for rate in reproduction.rates)
    chosen = ", ".join(
        f"{o.row.name} {o.recipe.learning_rate:g}"
        for o in outcomes
        if reproduction.rate(o.row) is not None
    )
    return (
        f"Learning rates, each chosen from {tried} by the validation error of "
        f"the first seed: {chosen or 'none yet'}."
    )


def _machine_text(outcomes):
    results = [r for o in outcomes for r in o.results.values()]
    machines = {r["machine"] for r in results if "machine" in r}
    if not machines:
        return ""
    minutes = sum(r.get("train_seconds", 0) for r in results) / 60
    text = (
        f"Machine: {'; '.join(sorted(machines))}. Training and validation "
        f"took {minutes:.1f} minutes in all."
    )
    load = max(r.get("load_per_core", 0) for r in results)
    if load > _BUSY:
        text += (
            f" Other work shared the machine ({load:.1f} processes wanted "
            "each core), so take times as rough."
        )
    return text


def _deviations(reproduction, outcomes):
    if reproduction.minutes is None:
        return ""
    off = []
    for outcome in outcomes:
        taken = _minutes_of_steps(outcome)
        planned = reproduction.minutes * outcome.row.budget
        if taken and abs(taken / planned - 1) > _TOLERANCE:
            off.append(f"{outcome.row.name} {taken:.1f}")
    if not off:
        return ""
    return (
        "Steps were slower or faster in the run than when it was planned. "
        f"Minutes that they took: {', '.join(off)}."
    )


def _minutes_of_steps(outcome):
    images, seconds = outcome.mean("images_seen"), outcome.seconds_per_step
    if not images:
        return None
    return images / outcome.recipe.batch_size * seconds / 60
