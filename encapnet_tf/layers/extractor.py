"""f of feedback agreement: from maps to the vectors that are compared."""

import keras
import tensorflow as tf

from encapnet_tf.layers.conv_norm import ConvNorm

# Ours: on such maps two strides of 2 leave one entry, and the cosine distance
# of vectors with one entry is constant.
_SMALL_MAP = 4


@keras.saving.register_keras_serializable(package="encapnet")
class Extractor(keras.layers.Layer):
    """f: two convolutions, each → BN → ReLU, to one vector per sample.

    Args:
        frozen: Whether the weights stay the random ones of the start.
        signed: Whether the last ReLU is left out.

    Call arguments:
        inputs: Maps `(B, H, W, channels)`.

    Returns:
        Vectors `(B, entries)`.
    """

    def __init__(self, frozen=False, signed=False, **kwargs):
        super().__init__(**kwargs)
        self.frozen = frozen
        self.signed = signed

    def build(self, input_shape):
        """Makes the two convolutions."""
        _, height, width, channels = input_shape
        small = max(height, width) <= _SMALL_MAP
        # Kernel 3, a quarter of the channels, then one (appendix B).
        self.first = ConvNorm(
            max(1, channels // 4), 3, 2, name="first", dtype=self.dtype_policy
        )
        self.second = ConvNorm(
            1,
            3,
            1 if small else 2,
            relu=not self.signed,
            name="second",
            dtype=self.dtype_policy,
        )
        self.first.build(input_shape)
        shape = self.first.compute_output_shape(input_shape)
        self.second.build(shape)
        shape = self.second.compute_output_shape(shape)
        self.num_entries = shape[1] * shape[2]
        check_entries(self.num_entries, input_shape)
        if self.frozen:
            # Not the layers: batch norms would leave the batch's statistics.
            for variable in self.trainable_variables:
                variable.trainable = False

    def call(self, inputs, training=None):
        """Extracts the vectors, by the statistics of this batch."""
        maps = self.first(inputs, training=training)
        maps = self.second(maps, training=training)
        return tf.reshape(maps, (-1, self.num_entries))

    def compute_output_shape(self, input_shape):
        """Returns `(B, entries)`."""
        return (input_shape[0], self.num_entries)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "frozen": self.frozen,
            "signed": self.signed,
        }


def check_entries(count, lower_shape):
    """Refuses maps that are too small to be compared."""
    if count < 2:
        raise ValueError(
            "The maps are too small for feedback agreement: one entry per "
            "sample is left to compare, and the cosine distance of such "
            "vectors is constant. Received: lower maps of shape "
            f"{tuple(lower_shape)}. Join larger maps."
        )
