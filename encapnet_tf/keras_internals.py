"""All that the library borrows from the inside of Keras.

An upgrade that takes it away fails `tests/test_internals.py` first.
"""

import keras


def sub_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Returns the layers within a layer, to any depth, each once.

    `Model.layers` leaves out the layers of a layer that is not a model.
    """
    return layer._flatten_layers(include_self=False)
