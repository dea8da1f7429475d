"""What the agreement units of a run did, told from its `metrics.csv`."""

from collections.abc import Sequence
from typing import Any

# Of a unit, as `FeedbackAgreement` names them.
NUMBERS = ("loss", "spread", "zero_vectors", "gradient_share")
# A spread of f(u) below this share of the first one: samples look alike to f.
COLLAPSED = 0.1

Row = dict[str, Any]


def agreement_losses(row: Row) -> Row:
    """Returns the losses of the agreement units in a row of `metrics.csv`.

    Example:
        >>> agreement_losses({"loss": 1.5, "module1_agreement_input_loss": 0.5})
        {'module1_agreement_input_loss': 0.5}
    """
    return {
        name: value
        for name, value in row.items()
        if "_agreement_" in name and name.endswith("_loss")
    }


def unit_names(row: Row) -> list[str]:
    """Returns the names of the agreement units in a row of `metrics.csv`."""
    return [name.removesuffix("_loss") for name in agreement_losses(row)]


def collapses(history: Sequence[Row]) -> dict[str, int]:
    """Returns the units that no longer tell samples apart, and since when.

    Args:
        history: The rows of `metrics.csv`; those of older runs tell nothing.

    Returns:
        By the unit's name, the first epoch in which it had collapsed.

    Example:
        >>> spreads = {1: 0.9, 2: 0.05, 3: 0.01}
        >>> collapses([
        ...     {"epoch": e, "m_agreement_u_loss": 0, "m_agreement_u_spread": s}
        ...     for e, s in spreads.items()
        ... ])
        {'m_agreement_u': 2}
    """
    found = {}
    for row in history:
        for unit in unit_names(row):
            if row.get(f"{unit}_spread", 1.0) < COLLAPSED:
                found.setdefault(unit, row["epoch"])
    return found


def collapse_notes(history: Sequence[Row]) -> list[str]:
    """Says which units have collapsed in the last epoch, and in no earlier."""
    last = history[-1]
    return [
        f"Agreement unit {unit} has collapsed: samples look alike to it, since "
        f"its f(u) has {last[f'{unit}_spread']:.1%} of the spread it began "
        f"with and {last[f'{unit}_zero_vectors']:.0%} of the vectors are zero. "
        "It teaches nothing any more; docs/agreement.md says what to do."
        for unit, epoch in collapses(history).items()
        if epoch == last["epoch"]
    ]


def summarise_units(history: Sequence[Row]) -> dict[str, Row]:
    """Returns each unit's numbers in the last epoch, and when it collapsed."""
    last, collapsed = history[-1], collapses(history)
    return {
        unit: {name: last.get(f"{unit}_{name}") for name in NUMBERS}
        | {"collapsed_in_epoch": collapsed.get(unit)}
        for unit in unit_names(last)
    }
