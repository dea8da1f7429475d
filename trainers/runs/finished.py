"""Loading a finished run, or starting from one."""

import json
import os
import pathlib
import platform
from dataclasses import dataclass, replace
from typing import Any

import keras
import tensorflow as tf

import encapnet_tf
from encapnet_tf.layers import Lengths
from encapnet_tf.weights.archive import damaged, read_archive
from encapnet_tf.weights.trained import read_model
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
    model = read_model(folder.model)
    if model.output_shape[-1] != len(summary["class_names"]):
        raise ValueError(
            "The files of a run must belong together. Received: "
            f"{folder.model} with {model.output_shape[-1]} scores and "
            f"{folder.summary} with {len(summary['class_names'])} classes."
        )
    return Run(folder, recipe, model, summary)


def load_archive(path: pathlib.Path) -> Run:
    """Loads the run that an archive of weights was made from.

    Args:
        path: A file that `python -m export.weights` wrote.

    Returns:
        The run, its network with the decoder where there is one.

    Raises:
        ValueError: The file is damaged.
    """
    about, _ = read_archive(path)
    try:
        recipe, summary = make_recipe(about["recipe"]), about["summary"]
        decoder = {k: v for k, v in about["config"].items() if k == "decoder"}
    except (KeyError, TypeError, ValueError) as problem:
        raise damaged(path, problem) from problem
    model = encapnet_tf.create_model(
        about["variant"], weights=path, **decoder
    )  # fmt: skip
    # Whatever it was trained in, the weights are float32.
    recipe = replace(recipe, dtype_policy="float32")
    return Run(RunFolder(path.with_suffix("")), recipe, model, summary)


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
    other = read_model(model_to_start_from(path))
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
        raise damaged(folder.config, problem) from problem


def _read_summary(folder):
    try:
        summary = json.loads(folder.summary.read_text())
        names = summary["class_names"]
    except (ValueError, KeyError, TypeError) as problem:
        raise damaged(folder.summary, problem) from problem
    if not isinstance(names, list) or not names:
        raise damaged(folder.summary, "no list of class names")
    return summary
