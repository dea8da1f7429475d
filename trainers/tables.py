"""Tables for people and for other programs."""

import csv
import pathlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from trainers.files import written_atomically

if TYPE_CHECKING:
    from trainers.scoring import ClassErrors

# Longer tables of classes are cut to the worst.
_CLASSES = 30


def aligned(rows: Sequence[Sequence[str]], sides: Iterable[str]) -> str:
    """Sets text in columns.

    Args:
        rows: The cells of each line, the heads first.
        sides: Per column, "<" for words or ">" for numbers.

    Returns:
        The lines, indented by two.

    Example:
        >>> print(aligned([("class", "error"), ("cat", "5.0%")], "<>"))
          class   error
          cat      5.0%
    """
    return "\n".join("  " + line for line in _columns(rows, sides, "   "))


def ruled(
    heads: Sequence[Sequence[str]],
    rows: Sequence[Sequence[str]],
    sides: Iterable[str],
) -> str:
    """Sets text in columns under heads of one or more lines, and a rule.

    Example:
        >>> print(ruled([("layer", "MiB")], [("stem", "1.0")], "<>"))
        layer  MiB
        ----------
        stem   1.0
    """
    lines = list(_columns([*heads, *rows], sides, "  "))
    rule = "-" * max(map(len, lines))
    return "\n".join([*lines[: len(heads)], rule, *lines[len(heads) :]])


def _columns(rows, sides, gap):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = list(sides)
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        texts = [f"{cell:{side}{width}}" for cell, side, width in cells]
        yield gap.join(texts).rstrip()


def markdown(rows: Sequence[Sequence[str]], sides: Iterable[str]) -> str:
    """Sets text in a Markdown table.

    Args:
        rows: The cells of each line, the heads first.
        sides: Per column, "<" for words or ">" for numbers.

    Example:
        >>> print(markdown([("class", "error"), ("cat", "5.0%")], "<>"))
        | class | error |
        |---|--:|
        | cat | 5.0% |
    """
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    rule = "|".join("--:" if side == ">" else "---" for side in sides)
    return "\n".join([head, f"|{rule}|", *body])


def error_sentence(summary: dict[str, Any]) -> str:
    """Says what `scoring.measure_test` found, by one view first."""
    low, high = summary["test_error_interval"]
    top5 = summary.get("test_top5_error")
    views = summary.get("multi_crop_views")
    crops = f"by the mean of {views} crops" if views else ""
    return (
        f"test error {summary['test_error']:.2%} "
        f"(95% interval {low:.2%} to {high:.2%}, "
        f"{summary['test_images']:,} images"
        + (f"; {crops} {summary['multi_crop_error']:.2%})" if views else ")")
        + (f", top-5 error {top5:.2%}" if top5 is not None else "")
    )


def class_table(classes: list["ClassErrors"]) -> str:
    """Tabulates the errors of the classes, or of the worst of very many."""
    title, shown = "", classes
    if len(classes) > _CLASSES:
        title = f"The worst {_CLASSES} of {len(classes)} classes:\n"
        shown = sorted(classes, key=lambda row: -(row.error or 0))[:_CLASSES]
    rows = [("class", "images", "error", "most often taken for")]
    for row in shown:
        error = f"{row.error:.1%}" if row.images else "–"
        other = f"{row.taken_for} ({row.times})" if row.times else "–"
        rows.append((row.name, f"{row.images:,}", error, other))
    return title + aligned(rows, "<>><")


def write_csv(
    path: pathlib.Path,
    rows: Sequence[dict[str, Any]],
    names: Sequence[str] | None = None,
) -> None:
    """Writes rows with the same keys as a CSV file.

    Args:
        path: The file.
        rows: The rows; none need the names of the columns.
        names: The columns; default: the keys of the first row.
    """
    with (
        written_atomically(path) as temporary,
        temporary.open("w", newline="") as file,
    ):
        writer = csv.DictWriter(file, fieldnames=list(names or rows[0]))
        writer.writeheader()
        writer.writerows(rows)
