"""What a search shows: its files after every trial, and its table."""

from collections.abc import Sequence
from typing import Any

from trainers.files import written_atomically
from trainers.study.outcome import noise
from trainers.tables import aligned, write_csv
from trainers.tune import plots
from trainers.tune.trials import Search, TrialOutcome

# Longer tables are cut to the best; the file has all.
_SHOWN = 20


def write(search: Search, outcomes: Sequence[TrialOutcome]) -> None:
    """Writes `trials.csv`, `best.json` and `landscape.png`."""
    write_csv(search.table, [_row(search, o) for o in outcomes])
    ranked = ranking(outcomes)
    if ranked:
        with written_atomically(search.best) as path:
            ranked[0].recipe.save(path)
        plots.draw(search.axes, outcomes, search.picture)


def ranking(outcomes: Sequence[TrialOutcome]) -> list[TrialOutcome]:
    """Returns the completed trials, best first."""
    done = [o for o in outcomes if o.status == "completed"]
    return sorted(done, key=lambda outcome: outcome.error)


def _row(search: Search, outcome: TrialOutcome) -> dict[str, Any]:
    seeds = [search.recipe.seed + turn for turn in range(search.executions)]
    done = outcome.status == "completed"
    row = {
        "trial": outcome.trial,
        "status": outcome.status,
        "reason": outcome.failure.get("reason"),
        **outcome.values,
        "epochs": outcome.recipe.epochs,
        "error": outcome.error if done else None,
        "spread": outcome.spread,
    }
    row |= {f"error_seed{seed}": outcome.errors.get(seed) for seed in seeds}
    return row | {
        "agreement_loss": outcome.mean("agreement_loss"),
        "seconds": outcome.seconds,
    }


def line(outcome: TrialOutcome) -> str:
    """Says in one line how a trial ended."""
    values = "  ".join(f"{n} {_text(v)}" for n, v in outcome.values.items())
    head = f"trial {outcome.trial}  {values}"
    if outcome.status == "failed":
        return f"{head}  failed: {outcome.failure['reason']}"
    spread = f" ± {outcome.spread:.2%}" if outcome.spread is not None else ""
    return (
        f"{head}  validation error {outcome.error:.2%}{spread}  "
        f"{outcome.seconds:.0f} s"
    )


def table(outcomes: Sequence[TrialOutcome]) -> str:
    """Sets out the trials, best first, then why others failed."""
    ranked = ranking(outcomes)
    lines = []
    if ranked:
        lines.append(_completed(ranked[:_SHOWN]))
    if len(ranked) > _SHOWN:
        lines.append(f"  and {len(ranked) - _SHOWN} more in trials.csv")
    lines += [
        f"  trial {o.trial} failed: {o.failure['reason']}"
        for o in outcomes
        if o.status == "failed"
    ]
    return "\n".join(lines)


def _completed(ranked):
    lengths = {outcome.recipe.epochs for outcome in ranked}
    columns = {"trial": [o.trial for o in ranked]}
    for name in ranked[0].values:
        columns[name] = [_text(o.values[name]) for o in ranked]
    if len(lengths) > 1:
        columns["epochs"] = [str(o.recipe.epochs) for o in ranked]
    columns["error"] = [f"{o.error:.2%}" for o in ranked]
    if any(o.spread is not None for o in ranked):
        columns["spread"] = [f"{o.spread or 0:.2%}" for o in ranked]
    columns["agreement loss"] = [
        _text(o.mean("agreement_loss")) for o in ranked
    ]
    columns["seconds"] = [f"{o.seconds:.0f}" for o in ranked]
    rows = [tuple(columns), *zip(*columns.values(), strict=True)]
    return aligned(rows, ">" * len(columns))


def _text(value):
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def verdict(outcomes: Sequence[TrialOutcome]) -> str:
    """Says which trial is best, and whether the noise allows saying so."""
    best, *others = ranking(outcomes)
    close = [o for o in others if o.error - best.error <= noise(best, o)]
    found = f"Best is trial {best.trial} with {best.error:.2%}"
    if not others:
        return f"{found}, the only one that completed."
    if not close:
        return (
            f"{found}; the next, {others[0].error:.2%}, is farther from it "
            "than the noise."
        )
    names = [o.trial for o in close]
    which = f"trial {names[0]} is"
    if len(names) > 1:
        which = f"trials {', '.join(names[:-1])} and {names[-1]} are"
    if len(names) > 4:
        which = f"{len(names)} others are"
    return (
        f"{found}, but {which} within the noise of it (two standard errors "
        f"of the difference, {noise(best, close[0]):.2%}): take any of them, "
        "or more --executions_per_trial."
    )
