"""Refuses Keras on anything but TensorFlow, as soon as it is imported."""

import keras

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        "encapnet_tf needs Keras on TensorFlow. Received: Keras on "
        f"{keras.backend.backend()}. Set KERAS_BACKEND=tensorflow."
    )
