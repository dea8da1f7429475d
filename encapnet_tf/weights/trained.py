"""Trained weights for a network: found, compared with it, given to it."""

import json
import os
import pathlib
from dataclasses import fields
from typing import Any, Protocol

import keras
import numpy as np

from encapnet_tf.checks import did_you_mean
from encapnet_tf.config import variant_config
from encapnet_tf.training_only import strip
from encapnet_tf.weights import MODEL_FILE, SHIPPED
from encapnet_tf.weights.archive import damaged, read_archive, shipped_path

# A trained network can be had with its decoder or without.
_FREE = ("decoder", "decoder_weight")


class Trained(Protocol):
    """Trained weights, wherever they come from."""

    def overrides(self, variant: str, given: dict[str, Any]) -> dict[str, Any]:
        """Returns the fields of the network that the weights are for.

        Args:
            variant: The name of the network that is asked for.
            given: Fields that are asked for.

        Raises:
            ValueError: The weights are another network's.
        """

    def give(self, model: keras.Model) -> None:
        """Gives a network the weights, or refuses one they do not fit."""


class FromArchive:
    """The weights of an archive, which knows its network.

    Args:
        path: The file.
        name: What the user calls it.
    """

    def __init__(self, path: pathlib.Path, name: str):
        self._name = name
        self._about, self._values = read_archive(path)

    def overrides(self, variant: str, given: dict[str, Any]) -> dict[str, Any]:
        """Returns the stored config, with the decoder where it is given."""
        own = {n: _in_tuples(v) for n, v in self._about["config"].items()}
        _check_same(self._name, "variant", self._about["variant"], variant)
        without = {"decoder": "none"} if "decoder" in own else {}
        stored = variant_config(variant, **own)
        wanted = variant_config(variant, **(own | without | given))
        for field in fields(wanted):
            if field.name not in _FREE:
                theirs, ours = (
                    _in_tuples(getattr(config, field.name))
                    for config in (stored, wanted)
                )
                _check_same(self._name, field.name, theirs, ours)
        return own | without | given

    def give(self, model: keras.Model) -> None:
        """Gives a network its weights."""
        _assign(self._name, model, self._values)


class FromModel:
    """The weights of a saved Keras model, such as a run's.

    Args:
        path: The `.keras` file.
        name: What the user calls it.
    """

    def __init__(self, path: pathlib.Path, name: str):
        self._name = name
        self._model = read_model(path)

    def overrides(self, variant: str, given: dict[str, Any]) -> dict[str, Any]:
        """Returns what is given, with the model's classes and shape."""
        own = {
            "num_classes": self._model.output_shape[-1],
            "input_shape": self._model.input_shape[1:],
        }
        wanted = own | given
        for field, value in own.items():
            _check_same(self._name, field, value, _in_tuples(wanted[field]))
        return wanted

    def give(self, model: keras.Model) -> None:
        """Compares layer by layer, then gives a network its weights."""
        theirs, ours = (_settings(one) for one in (self._model, model))
        for name in theirs | ours:
            _check_same(self._name, name, theirs.get(name), ours.get(name))
        values = {v.path: v.numpy() for v in self._model.weights}
        _assign(self._name, model, values)


def find_weights(weights: str | os.PathLike) -> Trained:
    """Finds trained weights.

    Args:
        weights: The name of those that ship, an archive, a `.keras` file, or
            the folder of a finished run.

    Raises:
        ValueError: There are none, or they are damaged.
    """
    path, name = pathlib.Path(weights), os.fspath(weights)
    if name in SHIPPED:
        return FromArchive(shipped_path(name), name)
    if path.is_dir():
        path /= MODEL_FILE
    if path.is_file() and path.suffix in (".npz", ".keras"):
        kind = FromArchive if path.suffix == ".npz" else FromModel
        return kind(path, name)
    raise ValueError(
        f"`weights` must be {', '.join(SHIPPED)}, the folder of a finished "
        "run, or a .keras or .npz file. "
        f"Received: weights={name}.{did_you_mean(name, SHIPPED)}"
    )


def read_model(path: pathlib.Path) -> keras.Model:
    """Reads a saved network, or refuses a damaged file in one line."""
    try:
        return keras.models.load_model(path, compile=False)
    # Keras passes on whatever zip, HDF5, JSON or a layer raises.
    except Exception as problem:
        raise damaged(path, problem) from problem


def _assign(name, model, values):
    missing = [v.path for v in model.weights if v.path not in values]
    if missing:
        raise ValueError(
            "`weights` must have all weights of the network. Received: "
            f"weights={name}, which has none for {_some(missing)}."
        )
    for variable in model.weights:
        value = values[variable.path]
        _check_same(name, variable.path, value.shape, tuple(variable.shape))
        variable.assign(value.astype(np.float32))


def _check_same(name, field, theirs, ours):
    if theirs != ours:
        raise ValueError(
            f"`weights` must be of the same network. Received: weights={name} "
            f"with {field}={theirs}, and {field}={ours} for the network."
        )


def _settings(model):
    """What its layers are that do not only train, as LAYER.SETTING: text."""
    settings = {}
    for layer in strip(model).layers:
        config = layer.get_config() | {"type": type(layer).__name__}
        # Mixed precision computes otherwise, with the same weights.
        config.pop("dtype", None)
        for name, value in config.items():
            settings[f"{layer.name}.{name}"] = json.dumps(value, default=str)
    return settings


def _in_tuples(value):
    """JSON's lists as the tuples that they were."""
    if isinstance(value, list | tuple):
        return tuple(map(_in_tuples, value))
    return value


def _some(names, most=3):
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
