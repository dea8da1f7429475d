"""From the name of a variant to a model."""

import os
from typing import Any

import keras

from encapnet_tf.config import (
    VARIANTS,
    CapNetConfig,
    CNNConfig,
    EncapNetConfig,
    ResNetConfig,
    variant_config,
)
from encapnet_tf.models.capnet import build_capnet
from encapnet_tf.models.cnn import build_cnn
from encapnet_tf.models.encapnet import build_encapnet
from encapnet_tf.models.resnet import build_resnet
from encapnet_tf.weights.trained import find_weights

_BUILDERS = {
    EncapNetConfig: build_encapnet,
    CapNetConfig: build_capnet,
    CNNConfig: build_cnn,
    ResNetConfig: build_resnet,
}


def list_variants() -> list[str]:
    """Returns the names that `create_model` takes.

    Example:
        >>> "encapnet_small" in list_variants()
        True
    """
    return list(VARIANTS)


def create_model(
    variant: str,
    num_classes: int | None = None,
    input_shape: tuple[int, int, int] | None = None,
    weights: str | os.PathLike | None = None,
    **overrides: Any,
) -> keras.Model:
    """Builds a network of the paper, or one of ours.

    Args:
        variant: A name from `list_variants()`.
        num_classes: Number of classes; the variant's own (10, or 200 for v2
            and v3) where not given.
        input_shape: Height, width and channels; the variant's own where not
            given. Sides below 32 are zero-padded; above 64 the network starts
            with a 7×7 convolution and a pool.
        weights: Trained ones: "house_numbers" or "mnist" (of
            `encapnet_small`, with `decoder="conv"` those of its decoder, too),
            the folder of a finished run, a `.keras` file, or an `.npz` of
            `python -m export.weights`. Classes and shape are then theirs by
            default. Without, the weights are random.
        **overrides: Any field of the variant's config, such as
            `agreement="none"` or `agreement_options={"weight": 1.0}`.

    Returns:
        A functional model from images in [0, 1] to class scores: capsule
        lengths, or logits for the CNN and ResNet variants.

    Example:
        >>> create_model("encapnet_tiny", num_classes=3).output_shape
        (None, 3)
        >>> create_model("encapnet_small", weights="mnist").input_shape
        (None, 28, 28, 1)
    """
    given = {"num_classes": num_classes, "input_shape": input_shape}
    overrides |= {name: v for name, v in given.items() if v is not None}
    if weights is None:
        return _build(variant, overrides)
    trained = find_weights(weights)
    model = _build(variant, trained.overrides(variant, overrides))
    trained.give(model)
    return model


def _build(variant, overrides):
    config = variant_config(variant, **overrides)
    return _BUILDERS[type(config)](config, name=variant)
