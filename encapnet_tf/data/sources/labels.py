"""From labels as people store them to numbers of classes."""

import numpy as np


def number_classes(
    path: str,
    labels: dict[str, np.ndarray],
    class_names: tuple[str, ...],
    num_classes: int | None,
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Numbers the classes of a file, and names them.

    Labels are words, or integers of any kind. Integers from 0 up to the
    number of names are places among the names; others are numbered in their
    order and keep their value as a name.

    Args:
        path: The file, for messages.
        labels: By part ("train", "val", "test") words or integers `(N,)`.
        class_names: Names in the file, in order, or none.
        num_classes: How many classes there are, if known beforehand.

    Returns:
        The int32 labels by part, and the names.
    """
    present = np.unique(labels["train"])
    if len(present) < 2:
        raise ValueError(
            "At least two classes are needed. Received: only class "
            f"{present[0]} in y_train of {path}."
        )
    values = _values(path, present, class_names, num_classes)
    for part, own in labels.items():
        unknown = np.setdiff1d(own, values)
        if len(unknown):
            way_out = "." if part == "train" else ", or add such to x_train."
            raise ValueError(
                f"y_{part} may have the classes {_some(values)} only. "
                f"Received: {_some(unknown)} too, in {path}. Take these images "
                f"out{way_out}"
            )
    names = class_names or tuple(str(value) for value in values)
    order = np.argsort(values, kind="stable")
    return {
        part: order[np.searchsorted(values, own, sorter=order)].astype(np.int32)
        for part, own in labels.items()
    }, names


def _values(path, present, class_names, num_classes):
    """What stands for each class in the file, in the order of the classes."""
    if present.dtype.kind == "U":
        values = np.array(class_names) if class_names else present
    elif num_classes is not None:
        values = np.arange(num_classes)
    elif len(class_names) in (0, len(present)):
        values = present
    else:
        values = np.arange(len(class_names))
    missing = np.setdiff1d(values, present)
    if len(missing) and num_classes is None:
        raise ValueError(
            "Every class must have training images. Received: none for "
            f"{_some(missing)} in y_train of {path}, which has "
            f"{len(class_names)} class_names. Name only the classes that are "
            "there."
        )
    return values


def _some(values):
    shown = ", ".join(str(value) for value in values[:10])
    return shown + (", …" if len(values) > 10 else "")
