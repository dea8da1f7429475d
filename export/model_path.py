"""What lies at a path, as far as one can tell without opening it."""

import os
import pathlib

from export.choices import LABELS
from export.version.folders import versions

_FILES = {".tflite": "lite", ".onnx": "onnx", ".keras": "keras"}


def kind_of(path: str | os.PathLike) -> str:
    """Returns what kind of model lies at a path; starts nothing slow.

    Args:
        path: Where a person says that a model is.

    Returns:
        "lite", "onnx", "keras", "saved_model", "versions" or "run".

    Raises:
        ValueError: It is none of them.
    """
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
        "`model` must be a .tflite, .onnx or .keras file, a SavedModel, a "
        "folder of its versions, or a run's folder. "
        f"Received: model={path}, which {reason}"
    )
