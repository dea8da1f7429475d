"""Takes the training-only branch out of a model."""

import keras

from encapnet_tf.agreement import agreement_units, functional
from encapnet_tf.layers import FeedbackAgreement


def strip(model: keras.Model) -> keras.Model:
    """Returns the model without its feedback agreement units.

    Args:
        model: A functional or sequential Keras model.

    Returns:
        A model with the same outputs, bit for bit, made of the same layers
        (shared with `model`) but for the units and their variables; `model`
        itself where it has none.

    Example:
        >>> import encapnet_tf
        >>> model = encapnet_tf.create_model("encapnet_tiny")
        >>> len(encapnet_tf.agreement_units(strip(model)))
        0
    """
    if not agreement_units(model):
        return model

    def call(layer, *args, **kwargs):
        if isinstance(layer, FeedbackAgreement):
            higher, _ = args[0]
            return higher
        return layer(*args, **kwargs)

    def keep(layer):
        is_model = isinstance(layer, keras.Model)
        return strip(layer) if is_model else layer

    return keras.models.clone_model(
        functional(model), clone_function=keep, call_function=call
    )
