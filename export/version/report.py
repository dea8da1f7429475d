"""What an export says when it is done."""

from export.choices import CARD, CONFIG, LABELS
from export.version.from_run import Export
from export.version.model_card import format_rows
from trainers.tables import aligned


def report(export: Export) -> str:
    """Returns where the version is, and a table of what is in it."""
    rows = format_rows(export.written)
    lines = [
        f"Written to {export.folder}:",
        aligned(rows, "<" + ">" * (len(rows[0]) - 1)),
        f"  {CARD}  {LABELS}  {CONFIG}",
    ]
    if export.absence:
        lines.insert(
            0, f"Checked on noise; the data cannot be read: {export.absence}"
        )
    return "\n".join(lines)
