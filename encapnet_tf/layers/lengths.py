"""The class score of a capsule network."""

import keras

from encapnet_tf import ops


@keras.saving.register_keras_serializable(package="encapnet")
class Lengths(keras.layers.Layer):
    """Takes the length of each capsule: the score of its class.

    Call arguments:
        inputs: Capsules `(B, M, D)`.

    Returns:
        Lengths `(B, M)`, in float32 at least.

    Example:
        >>> Lengths()(np.array([[[3.0, 4.0]]])).numpy().tolist()
        [[5.0]]
    """

    def call(self, inputs):
        """Computes the lengths."""
        return ops.length(ops.at_least_float32(inputs))

    def compute_output_spec(self, inputs):
        """Scores are float32 under mixed precision, too."""
        dtype = "float64" if inputs.dtype == "float64" else "float32"
        return keras.KerasTensor(inputs.shape[:-1], dtype)
