"""Layers that only train: which they are, and how they are taken out."""

import keras

from encapnet_tf.keras_internals import sub_layers
from encapnet_tf.layers import CapsuleDecoder, FeedbackAgreement

# Each returns the first of its inputs, unchanged, and adds its `recent_loss`.
TRAINING_ONLY = (FeedbackAgreement, CapsuleDecoder)


def training_only_layers(
    model: keras.Model, kinds: tuple[type, ...] = TRAINING_ONLY
) -> list[keras.layers.Layer]:
    """Returns the layers of a model, sub-models included, that only train."""
    return [layer for layer in sub_layers(model) if isinstance(layer, kinds)]


def strip(model: keras.Model) -> keras.Model:
    """Takes out all that only trains: agreement units and the decoder.

    Args:
        model: A functional or sequential Keras model.

    Returns:
        A plain model with the same outputs, bit for bit, made of the same
        layers (shared with `model`) but for these and their variables;
        `model` itself where it has none.

    Example:
        >>> from encapnet_tf import create_model
        >>> model = create_model("encapnet_tiny", decoder="conv")
        >>> len(training_only_layers(strip(model)))
        0
    """
    bare = without(model, TRAINING_ONLY)
    if bare is model:
        return model
    # The class of a model with a decoder is there for its training, too.
    return keras.Model(bare.input, bare.output, name=bare.name)


def without(model: keras.Model, kinds: tuple[type, ...]) -> keras.Model:
    """Returns a model without some kinds of the layers that only train."""
    if not training_only_layers(model, kinds):
        return model

    def call(layer, *args, **kwargs):
        if isinstance(layer, kinds):
            passed, _ = args[0]
            return passed
        return layer(*args, **kwargs)

    def keep(layer):
        is_model = isinstance(layer, keras.Model)
        return without(layer, kinds) if is_model else layer

    return keras.models.clone_model(
        functional(model), clone_function=keep, call_function=call
    )


def functional(model: keras.Model) -> keras.Model:
    """Returns the model, a sequential one in functional form."""
    if isinstance(model, keras.Sequential) and model.built:
        return keras.Model(model.inputs[0], model.outputs[0], name=model.name)
    # Keras gives `inputs` to models made of layers' calls, and to no others.
    if not hasattr(model, "inputs"):
        raise ValueError(
            "`model` must be a functional or built sequential Keras model. "
            f"Received: {type(model).__name__}."
        )
    return model
