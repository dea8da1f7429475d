"""g of feedback agreement: lower maps recovered from higher ones."""

import keras
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.layers.batch_norm import BatchNorm


@keras.saving.register_keras_serializable(package="encapnet")
class Generator(keras.layers.Layer):
    """g: transposed convolution → BN → ReLU (→ squash), from higher to lower.

    Args:
        num_capsules: Groups of the convolution and capsules of the squash;
            None: ungrouped and no squash (the paper's ablation d4).

    Call arguments:
        inputs: Pair (higher maps, lower maps); of the lower only the shape
            matters.

    Returns:
        Maps of the lower's shape.
    """

    def __init__(self, num_capsules=None, **kwargs):
        super().__init__(**kwargs)
        self.num_capsules = num_capsules
        self.norm = BatchNorm(name="norm", dtype=self.dtype_policy)

    def build(self, input_shape):
        """Makes the kernel of the transposed convolution."""
        (_, *size, higher), (_, *lower_size, lower) = input_shape
        self.stride = _stride(tuple(size), tuple(lower_size))
        self.output_size = tuple(lower_size)
        # Kernel 3 (appendix B) covers the strides of the paper, 1 and 2.
        kernel_size = max(3, 2 * self.stride - 1)
        groups = self.num_capsules or 1
        self.kernel = self.add_weight(
            name="kernel",
            shape=(kernel_size, kernel_size, lower // groups, higher),
            initializer="glorot_normal",
        )
        self.bias = self.add_weight(
            name="bias", shape=(lower,), initializer="zeros"
        )
        self.norm.build(input_shape[1])

    def call(self, inputs, training=None):
        """Generates u' from the higher maps."""
        maps = ops.grouped_conv2d_transpose(
            inputs[0],
            self.kernel,
            groups=self.num_capsules or 1,
            stride=self.stride,
            output_size=self.output_size,
        )
        maps = self.norm(maps, bias=self.bias, training=training)
        if self.num_capsules is None:
            return tf.nn.relu(maps)
        return ops.activate_capsules(maps, self.num_capsules)

    def compute_output_shape(self, input_shape):
        """Returns the lower's shape."""
        return input_shape[1]

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {"num_capsules": self.num_capsules}


def _stride(higher_size, lower_size):
    """The stride that takes the lower size to the higher one."""
    # The one below is too small, and larger ones only shrink the lower more.
    stride = -(-lower_size[0] // higher_size[0])
    if tuple(-(-side // stride) for side in lower_size) != higher_size:
        raise ValueError(
            "The lower maps must be as large as the higher ones, or larger by "
            f"an integer stride. Received: higher {higher_size}, lower "
            f"{lower_size}. Calls and pairs name the higher end first."
        )
    return stride
