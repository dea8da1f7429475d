"""Loading a finished run, or starting from one."""

import json
import os
import platform
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

import encapnet_tf
from encapnet_tf.layers import Lengths
from trainers.recipe import Recipe, make_recipe
from trainers.runs.folder import (
    RunFolder,
    check_finished,
    model_to_start_from,
)
from trainers.stored_recipe import read_recipe


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: Where it lies.
        recipe: How it was trained.
        model: The trained network, from images in [0, 1] to class scores.
        summary: What training said about it: class names, test error, …
    """

    folder: RunFolder
    recipe: Recipe
    model: keras.Model
    summary: dict[str, Any]

    @property
    def class_names(self) -> tuple[str, ...]:
        """One name per class score."""
        return tuple(self.summary["class_names"])

    @property
    def scores(self) -> str:
        """What the class scores are: "lengths" of capsules, or "logits"."""
        layers = self.model.layers
        has_lengths = any(isinstance(layer, Lengths) for layer in layers)
        return "lengths" if has_lengths else "logits"

    @property
    def name(self) -> str:
        """The folder's own name, links such as `latest` followed."""
        return self.folder.path.resolve().name


def load_run(run_dir: str | os.PathLike) -> Run:
    """Loads a run, to evaluate it, to export it or to go on from it.

    Args:
        run_dir: The folder of a run that `trainers.fit` has finished.

    Returns:
        The run.

    Raises:
        ValueError: There is no finished run, or one of its files is damaged.
    """
    folder = check_finished("run_dir", run_dir)
    recipe = _read_recipe(folder)
    summary = _read_summary(folder)
    model = _read_model(folder.model)
    if model.output_shape[-1] != len(summary["class_names"]):
        raise ValueError(
            "The files of a run must belong together. Received: "
            f"{folder.model} with {model.output_shape[-1]} scores and "
            f"{folder.summary} with {len(summary['class_names'])} classes."
        )
    return Run(folder, recipe, model, summary)


def versions() -> dict[str, str]:
    """Returns what computes, by name, with its version."""
    return {
        "encapnet_tf": encapnet_tf.__version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "python": platform.python_version(),
    }


def start_from(model: keras.Model, path: str | os.PathLike) -> None:
    """Copies weights wherever name and shape agree.

    Args:
        model: Gets them.
        path: The folder of a finished run, or a `.keras` file.
    """
    other = _read_model(model_to_start_from(path))
    weights = {v.path: v for v in other.weights}
    missing = []
    for variable in model.weights:
        other = weights.get(variable.path)
        if other is not None and other.shape == variable.shape:
            variable.assign(other)
        else:
            missing.append(variable.path)
    if len(missing) == len(model.weights):
        raise ValueError(
            "`init_from` must have weights that fit this network. "
            f"Received: init_from={path}, in which none does."
        )
    if missing:
        print(f"Fresh weights for: {', '.join(missing)}")


def _read_recipe(folder):
    try:
        return make_recipe(read_recipe(folder.config))
    except (TypeError, ValueError) as problem:
        raise _damaged(folder.config, problem) from problem


def _read_summary(folder):
    try:
        summary = json.loads(folder.summary.read_text())
        names = summary["class_names"]
    except (ValueError, KeyError, TypeError) as problem:
        raise _damaged(folder.summary, problem) from problem
    if not isinstance(names, list) or not names:
        raise _damaged(folder.summary, "no list of class names")
    return summary


def _read_model(path):
    try:
        return keras.models.load_model(path, compile=False)
    # Keras passes on whatever zip, HDF5, JSON or a layer raises.
    except Exception as problem:
        raise _damaged(path, problem) from problem


def _damaged(path, problem):
    reason = str(problem).strip().splitlines() or [type(problem).__name__]
    return ValueError(
        f"{path} is damaged or was written by another version. "
        f"Received: {reason[0][:200]}"
    )
