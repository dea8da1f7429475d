"""What lies at a path, as far as one can tell without opening it."""

import os
import pathlib

from encapnet_tf.weights import SHIPPED
from encapnet_tf.weights.archive import shipped_path
from export.choices import LABELS
from export.version.folders import versions

_FILES = {".tflite": "lite", ".onnx": "onnx", ".keras": "keras"}


def kind_of(path: str | os.PathLike) -> str:
    """Returns what kind of model lies at a path; starts nothing slow.

    Args:
        path: Where a person says that a model is, or the name of one that
            ships.

    Returns:
        "archive", "lite", "onnx", "keras", "saved_model", "versions" or "run".

    Raises:
        ValueError: It is none of them.
    """
    if archive_at(path) is not None:
        return "archive"
    path = pathlib.Path(path)
    if path.is_file() and path.suffix in _FILES:
        return _FILES[path.suffix]
    if (path / "saved_model.pb").is_file():
        return "saved_model"
    if versions(path):
        return "versions"
    # So has a version, for model hubs; a run has no labels.
    is_version = (path / LABELS).is_file()
    if (path / "config.json").is_file() and not is_version:
        return "run"
    reason = "is none of them." if path.exists() else "does not exist."
    if is_version:
        reason = "has no SavedModel. Name one of its files."
    raise ValueError(
        f"`model` must be {', '.join(SHIPPED)}, a .tflite, .onnx, .keras or "
        ".npz file, a SavedModel, a folder of its versions, or a run's "
        f"folder. Received: model={path}, which {reason}"
    )


def archive_at(path: str | os.PathLike) -> pathlib.Path | None:
    """Returns the archive of weights that a path or a name stands for.

    Args:
        path: As above. What is there goes before a name that ships.
    """
    found = pathlib.Path(path)
    if found.is_file() and found.suffix == ".npz":
        return found
    if os.fspath(path) in SHIPPED and not found.exists():
        return shipped_path(os.fspath(path))
    return None
