"""Feedback agreement for any functional Keras model."""

from collections.abc import Iterable
from typing import Any

import keras

from encapnet_tf.layers import FeedbackAgreement
from encapnet_tf.training_only import (
    functional,
    training_only_layers,
    without,
)


def agreement_units(model: keras.Model) -> list[FeedbackAgreement]:
    """Returns the agreement units of a model, those in sub-models included."""
    return training_only_layers(model, (FeedbackAgreement,))


def set_agreement_ramp(model: keras.Model, value: float) -> None:
    """Sets the factor of λ, from 0 to 1, in every agreement unit."""
    for unit in agreement_units(model):
        unit.ramp.assign(value)


def attach_agreement(
    model: keras.Model, pairs: Iterable[tuple[str, str]], **options: Any
) -> keras.Model:
    """Joins layers of a functional model by feedback agreement units.

    Args:
        model: A functional or sequential Keras model.
        pairs: `(higher, lower)` names of layers whose outputs are maps
            `(B, H, W, channels)`.
        **options: As for `FeedbackAgreement`. Without `num_capsules` the maps
            are taken as plain ones: one capsule, vanilla generator.

    Returns:
        A model with the same outputs and the same layers (shared with `model`,
        so training one trains the other), which adds the agreement losses in
        training.

    Example:
        >>> model = keras.Sequential([
        ...     keras.Input((32, 32, 3)),
        ...     keras.layers.Conv2D(8, 3, padding="same", name="low"),
        ...     keras.layers.Conv2D(8, 3, 2, padding="same", name="high"),
        ... ])
        >>> len(agreement_units(attach_agreement(model, [("high", "low")])))
        1
    """
    if "num_capsules" not in options:
        options = {"num_capsules": 1, "generator": "vanilla"} | options
    model = functional(model)
    lower_of = _lower_by_higher(model, pairs)
    inputs = keras.tree.map_structure(
        lambda tensor: keras.Input(
            batch_shape=tensor.shape, dtype=tensor.dtype, name=tensor.name
        ),
        model.input,
    )
    outputs = {tensor.name: tensor for tensor in keras.tree.flatten(inputs)}

    def call(layer, *args, **kwargs):
        output = layer(*args, **kwargs)
        for lower in lower_of.get(layer.name, ()):
            if lower not in outputs:
                raise ValueError(
                    "The lower layer of a pair must come before the higher "
                    f"one. Received: higher={layer.name!r}, lower={lower!r}."
                )
            name = f"{layer.name}_agreement_{lower}"
            unit = FeedbackAgreement(**options, name=name)
            output = unit([output, outputs[lower]])
        outputs[layer.name] = output
        return output

    return keras.models.clone_model(
        model,
        input_tensors=inputs,
        clone_function=lambda layer: layer,
        call_function=call,
    )


def strip_agreement(model: keras.Model) -> keras.Model:
    """Takes out what `attach_agreement` puts in.

    Args:
        model: A functional or sequential Keras model.

    Returns:
        A model with the same outputs, bit for bit, made of the same layers
        (shared with `model`) but for the units and their variables; `model`
        itself where it has none.

    Example:
        >>> from encapnet_tf import create_model
        >>> len(agreement_units(strip_agreement(create_model("encapnet_tiny"))))
        0
    """
    return without(model, (FeedbackAgreement,))


def _lower_by_higher(model, pairs):
    names = {layer.name: layer for layer in model.layers}
    lower_of: dict[str, list[str]] = {}
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(
                "`pairs` must be a list of pairs of names, (higher, lower). "
                f"Received: {pair!r} in it. Try [('high', 'low')]."
            )
        higher, lower = pair
        for name in (higher, lower):
            if name not in names:
                raise ValueError(
                    "A pair must name two layers of the model, (higher, "
                    f"lower). Received: {name!r}, not one of "
                    f"{', '.join(names)}."
                )
        lower_of.setdefault(higher, []).append(lower)
    return lower_of
