"""The words of a reproduction's report, one section each."""

from collections.abc import Sequence

from trainers.reproduce.answers import answer
from trainers.reproduce.experiments import DATA_NAMES, Experiment
from trainers.reproduce.figures.routing_dynamics import read_snapshots
from trainers.reproduce.folder import Reproduction
from trainers.reproduce.order import compare
from trainers.reproduce.outcomes import RowOutcome
from trainers.study.outcome import noise
from trainers.tables import markdown

_TOO_SMALL = (
    "Only one seed: how much the errors vary from seed to seed is not known, "
    "so the noise counted here, that of a finite test set, is too small."
)


def about_order(
    reproduction: Reproduction, outcomes: Sequence[RowOutcome]
) -> str:
    """Compares our order with the paper's, and says what the noise allows."""
    data = reproduction.paper_data
    found = compare(outcomes, data)
    if found is None:
        return _about_errors_alone(reproduction, outcomes)
    lines = []
    if not reproduction.paper_has_data:
        lines.append(
            f"The paper has no numbers for these data; its order on "
            f"{DATA_NAMES[data]} is taken."
        )
    decided = len(found.same) + len(found.reversed)
    pairs = decided + len(found.close)
    if not decided:
        lines.append(
            f"All {pairs} differences between rows are within the noise (two "
            "standard errors): these runs say nothing about the order."
        )
    else:
        lines.append(
            f"Kendall's tau between our order and the paper's is "
            f"{found.tau:.2f} ({found.rows} rows, p = {found.p_value:.2g}"
            f"{_interval_text(found)}). "
            "Pairs of rows further apart than the noise (two standard "
            f"errors): {decided} of {pairs}, {len(found.same)} in the paper's "
            f"order, {len(found.reversed)} the other way round"
            f"{_named(found.reversed)}; the rest are too close to tell apart."
        )
    if reproduction.seeds == 1:
        lines.append(_TOO_SMALL)
    return " ".join(lines)


def _interval_text(found):
    if found.interval is None:
        return ""
    low, high = found.interval
    return f"; {low:.2f} to {high:.2f} when the seeds are drawn anew, 95%"


def about_questions(
    reproduction: Reproduction, outcomes: Sequence[RowOutcome]
) -> str:
    """Answers what the experiment asks, row against row."""
    by_name = {o.row.name: o for o in outcomes}
    lines = []
    for question in reproduction.experiment.questions:
        pair = [by_name.get(n) for n in (question.row, question.other)]
        found = answer(*pair) if all(pair) else None
        if found:
            lines.append(f"- **{question.text}** {_answer_text(found, *pair)}")
    return "\n".join(lines)


def _answer_text(found, row, other):
    text = (
        f"{found.verdict}: {row.row.name} {row.error:.2%}, {other.row.name} "
        f"{other.error:.2%}, {100 * abs(found.gain):.2f} "
    )
    if found.p_value is None:
        direction = "less" if found.gain > 0 else "more"
        return f"{text}points {direction} with a single seed."
    return (
        f"{text}± {100 * found.spread:.2f} points "
        f"{'less' if found.gain > 0 else 'more'} (paired t-test over "
        f"{found.seeds} seeds, p = {found.p_value:.2g})."
    )


def _named(pairs):
    if not pairs:
        return ""
    shown = [f"{better.name} before {worse.name}" for better, worse in pairs]
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return f" ({', '.join(shown[:8])}{more})"


def _about_errors_alone(reproduction, outcomes):
    """What can be said where the paper has nothing to compare with."""
    places: dict[float | None, list[RowOutcome]] = {}
    for outcome in outcomes:
        if outcome.error is not None:
            _, place = outcome.row.point or ("", None)
            places.setdefault(place, []).append(outcome)
    lines = [
        _best_of(found, place, reproduction.experiment.axis)
        for place, found in places.items()
        if len(found) > 1
    ]
    if not lines:
        return "Fewer than two rows have an error yet."
    if reproduction.seeds == 1:
        lines.append(_TOO_SMALL)
    return " ".join(lines)


def _best_of(outcomes, place, axis):
    best, *others = sorted(outcomes, key=lambda outcome: outcome.error)
    close = [
        o.row.name for o in others if o.error - best.error <= noise(best, o)
    ]
    text = f"Row {best.row.name} has the least error, {best.error:.2%}"
    if place is not None:
        text = f"{place:,} {axis}: row {best.row.name}, {best.error:.2%}"
    if close:
        return f"{text}; within the noise of it: {', '.join(close)}."
    return f"{text}, further from all others than the noise."


def about_costs(
    reproduction: Reproduction, outcomes: Sequence[RowOutcome]
) -> str:
    """Compares times per image, relative to one row."""
    by_name = {o.row.name: o for o in outcomes}
    reference = by_name.get(reproduction.experiment.reference)
    if reference is None or not reference.seconds_per_step:
        return ""
    name, cost = reference.row.name, reference.row.cost
    heads = (
        "row", "ms per image", f"relative to {name}", "paper's, relative",
        "peak memory, MiB (batch)", "paper's, MB on the GPU (batch)",
    )  # fmt: skip
    rows = [heads]
    for outcome in outcomes:
        own = _seconds_per_image(outcome)
        if own is None:
            continue
        other = outcome.row.cost
        ratio = (other.seconds / other.batch) / (cost.seconds / cost.batch)
        memory = (outcome.mean("peak_memory_bytes") or 0) / 2**20
        rows.append((
            outcome.row.name,
            f"{1000 * own:.2f}",
            f"{own / _seconds_per_image(reference):.2f}",
            f"{ratio:.2f}",
            f"{memory:,.0f} ({outcome.recipe.batch_size})",
            f"{other.memory:,.0f} ({other.batch})",
        ))  # fmt: skip
    return (
        "## Time and memory of a training step\n\n"
        + markdown(rows, "<>>>>>")
        + "\n\nMemory is reported, not compared: a process on our side, a GPU "
        "on the paper's."
    )


def _seconds_per_image(outcome):
    seconds = outcome.seconds_per_step
    return seconds and seconds / outcome.recipe.batch_size


def about_routing(
    reproduction: Reproduction, outcomes: Sequence[RowOutcome]
) -> str:
    """Sets the end of figure 2 beside the paper's."""
    if reproduction.experiment.figure != "routing":
        return ""
    rows = [(
        "row", "after epoch", "most dissimilar votes, %", "paper's",
        "length of the most similar", "paper's",
    )]  # fmt: skip
    for outcome in outcomes:
        folder = reproduction.folder(outcome.row, reproduction.all_seeds[0])
        snapshots = read_snapshots(folder)
        if not snapshots:
            continue
        last = snapshots[-1]
        percent, length = outcome.row.routing
        similar = last["lengths"][-1]
        rows.append((
            outcome.row.name,
            str(last["epoch"]),
            f"{last['percent'][0]:.1f}",
            f"{percent:g}",
            "no such votes" if similar is None else f"{similar:.3g}",
            f"{length:g}",
        ))  # fmt: skip
    if len(rows) == 1:
        return ""
    return "## Where the votes end\n\n" + markdown(rows, "<>>>>>")


def about_others(experiment: Experiment) -> str:
    """Lists what the paper quotes of others; none of it is run here."""
    if not experiment.published:
        return ""
    names = list(
        dict.fromkeys(n for e in experiment.published.values() for n in e)
    )
    rows = [("network", *(DATA_NAMES[name] for name in names))]
    for label, errors in experiment.published.items():
        cells = (f"{errors[n]:.2f}" if n in errors else "–" for n in names)
        rows.append((label, *cells))
    return (
        "## Others, as the paper quotes them\n\n"
        + markdown(rows, "<" + ">" * len(names))
        + "\n\nErrors in percent; not run here."
    )
