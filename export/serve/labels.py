"""Labels of versions: names that clients ask for in place of a number."""

import pathlib
import re
from collections.abc import Iterable, Mapping

from export.version.folders import versions


def parse_labels(texts: Iterable[str]) -> dict[str, int]:
    """Reads `--labels`.

    Raises:
        ValueError: They are not labels with a version each.

    Example:
        >>> parse_labels(["stable=1", "canary=2"])
        {'stable': 1, 'canary': 2}
    """
    labels: dict[str, int] = {}
    for text in texts:
        label, _, number = text.partition("=")
        # A label of digits could be taken for a version.
        is_label = re.fullmatch(r"[^/:=\s]*[^/:=\s\d][^/:=\s]*", label)
        if not (is_label and re.fullmatch(r"[0-9]{1,18}", number)):
            raise ValueError(
                "`--labels` must be names with a version each. "
                f"Received: {text}. Try --labels=stable=1,canary=2."
            )
        if label in labels:
            raise ValueError(
                f"`--labels` must name each label once. Received: {label} "
                "twice."
            )
        labels[label] = int(number)
    return labels


def check_labels(labels: Mapping[str, int], folder: pathlib.Path) -> None:
    """Refuses a label of a version that is not there."""
    there = versions(folder)
    for label, number in labels.items():
        if number not in there:
            raise ValueError(
                "`--labels` must name versions of the model. Received: "
                f"{label}={number}; {folder} has {', '.join(map(str, there))}."
            )
