"""A convolution over groups of channels."""

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf import ops


@keras.saving.register_keras_serializable(package="encapnet")
class GroupedConv2D(keras.layers.Layer):
    """Convolution in groups, padded by (k−1)/2 on both sides.

    Keras' own `Conv2D(groups=…)` is hundreds of times slower on a CPU, and its
    "same" padding is asymmetric at stride 2.

    Args:
        filters: Number of output channels.
        kernel_size: Odd integer k.
        stride: Stride in both directions.
        groups: Number of groups of channels; 1 is an ordinary convolution.
        use_bias: Whether to add a bias, zero at first.
        skip_own_block: None, or a number of blocks C (with one group): input
            and output channels are cut into C blocks, and an output block
            does not read the input block of its own number. Those entries of
            the kernel are zero and stay zero.

    Call arguments:
        inputs: `(B, H, W, channels)`.

    Returns:
        `(B, ⌈H/stride⌉, ⌈W/stride⌉, filters)`.

    Example:
        >>> GroupedConv2D(8, 3, stride=2, groups=4)(np.ones((1, 6, 6, 4))).shape
        TensorShape([1, 3, 3, 8])
    """

    def __init__(
        self,
        filters,
        kernel_size,
        stride=1,
        groups=1,
        use_bias=True,
        skip_own_block=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.stride = stride
        self.groups = groups
        self.use_bias = use_bias
        self.skip_own_block = skip_own_block

    def build(self, input_shape):
        """Makes the kernel and the bias."""
        channels = input_shape[-1]
        if channels % self.groups or self.filters % self.groups:
            raise ValueError(
                "`groups` must divide the input channels and `filters`. "
                f"Received: groups={self.groups}, input channels={channels}, "
                f"filters={self.filters}."
            )
        self.kernel = self.add_weight(
            name="kernel",
            shape=(
                self.kernel_size,
                self.kernel_size,
                channels // self.groups,
                self.filters,
            ),
            initializer=self._initial_kernel,
        )
        self.bias = (
            self.add_weight(
                name="bias", shape=(self.filters,), initializer="zeros"
            )
            if self.use_bias
            else None
        )

    def call(self, inputs):
        """Convolves and adds the bias."""
        outputs = ops.grouped_conv2d(
            inputs,
            self.masked_kernel(),
            groups=self.groups,
            stride=self.stride,
        )
        return outputs + self.bias if self.use_bias else outputs

    def masked_kernel(self):
        """The kernel, zero where blocks do not read their own."""
        kernel = tf.convert_to_tensor(self.kernel)
        if self.skip_own_block:
            kernel *= self._mask(kernel.shape, kernel.dtype)
        return kernel

    def compute_output_shape(self, input_shape):
        """Returns the shape of the result."""
        batch, *size, _ = input_shape
        shrunk = (side and -(-side // self.stride) for side in size)
        return (batch, *shrunk, self.filters)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "stride": self.stride,
            "groups": self.groups,
            "use_bias": self.use_bias,
            "skip_own_block": self.skip_own_block,
        }

    def _initial_kernel(self, shape, dtype=None):
        kernel = keras.initializers.GlorotNormal()(shape, dtype)
        if self.skip_own_block:
            kernel *= self._mask(shape, dtype)
        return kernel

    def _mask(self, shape, dtype):
        """0 where a block of outputs meets its own block of inputs."""
        blocks = self.skip_own_block
        own = np.kron(
            np.eye(blocks), np.ones((shape[2] // blocks, shape[3] // blocks))
        )
        return tf.constant(1 - own, dtype)
