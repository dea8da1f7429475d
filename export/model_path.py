"""What lies at a path, as far as one can tell without opening it."""

import os
import pathlib

from export.version.folders import versions


def kind_of(path: str | os.PathLike) -> str:
    """Returns what kind of model lies at a path; starts nothing slow.

    Args:
        path: Where a person says that a model is.

    Returns:
        "lite", "keras", "saved_model", "versions" or "run".

    Raises:
        ValueError: It is none of them.
    """
    path = pathlib.Path(path)
    if path.is_file() and path.suffix in (".tflite", ".keras"):
        return {".tflite": "lite", ".keras": "keras"}[path.suffix]
    if (path / "saved_model.pb").is_file():
        return "saved_model"
    if versions(path):
        return "versions"
    if (path / "config.json").is_file():
        return "run"
    raise ValueError(
        "`model` must be a .tflite or .keras file, a SavedModel, a folder of "
        f"its versions, or a run's folder. Received: model={path}, which "
        + ("is none of them." if path.exists() else "does not exist.")
    )
