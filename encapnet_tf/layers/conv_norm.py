"""Convolution and batch normalisation, together."""

import functools
import operator

import keras
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.layers.batch_norm import BatchNorm
from encapnet_tf.layers.grouped_conv import GroupedConv2D
from encapnet_tf.ops import forms


@keras.saving.register_keras_serializable(package="encapnet")
class ConvNorm(keras.layers.Layer):
    """Convolution → BN → ReLU.

    Args:
        filters: Number of output channels.
        kernel_size: Odd integer k; padded by (k−1)/2 on both sides.
        stride: Stride in both directions.
        use_bias: Whether the convolution has a bias.
        relu: Whether ReLU follows.

    Call arguments:
        inputs: `(B, H, W, channels)`.

    Returns:
        `(B, ⌈H/stride⌉, ⌈W/stride⌉, filters)`.

    Example:
        >>> ConvNorm(8, 3, stride=2)(np.ones((1, 6, 6, 4))).shape
        TensorShape([1, 3, 3, 8])
    """

    def __init__(
        self, filters, kernel_size, stride=1, use_bias=True, relu=True, **kwargs
    ):
        super().__init__(**kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.stride = stride
        self.use_bias = use_bias
        self.relu = relu
        self.conv = GroupedConv2D(
            filters,
            kernel_size,
            stride,
            use_bias=use_bias,
            name="conv",
            dtype=self.dtype_policy,
        )
        self.norm = BatchNorm(name="norm", dtype=self.dtype_policy)

    def build(self, input_shape):
        """Builds both."""
        self.conv.build(input_shape)
        self.norm.build(self.conv.compute_output_shape(input_shape))

    def call(self, inputs, training=None):
        """Convolves, normalises, rectifies."""
        maps = convolve_and_normalize(
            [self.conv], self.norm, inputs, training=training
        )
        return tf.nn.relu(maps) if self.relu else maps

    def compute_output_shape(self, input_shape):
        """Returns the shape of the result."""
        return self.conv.compute_output_shape(input_shape)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "stride": self.stride,
            "use_bias": self.use_bias,
            "relu": self.relu,
        }


def convolve_and_normalize(
    convolutions, norm, inputs, *, plus=None, training=None
):
    """Returns norm(Σ convolution(inputs) + plus), with few passes over maps.

    A sum of convolutions is one with the sum of their kernels. Biases go into
    the normalisation, where they are vectors. At inference the normalisation
    goes into the kernel, if that is the smaller work.

    Args:
        convolutions: Layers `GroupedConv2D` of one stride, at least one. If
            they have different groups, one of them has one group.
        norm: A `BatchNorm`.
        inputs: `(B, H, W, channels)`.
        plus: Optional maps of the result's shape.
        training: Whether the batch's own statistics count.
    """
    biases = [conv.bias for conv in convolutions if conv.use_bias]
    bias = functools.reduce(operator.add, biases) if biases else None
    kernel, groups = _joint_kernel(convolutions)
    call = {"groups": groups, "stride": convolutions[0].stride}
    by_batch = training and norm.trainable
    shape = convolutions[0].compute_output_shape(inputs.shape)[1:]
    if (
        plus is None
        and not by_batch
        and forms.normalizes_kernel(kernel, tf.TensorShape(shape))
    ):
        scale, offset = norm.affine(bias)
        maps = ops.grouped_conv2d(inputs, kernel * scale, **call)
        return tf.nn.bias_add(maps, offset)
    maps = ops.grouped_conv2d(inputs, kernel, **call)
    if plus is not None:
        maps += plus
    return norm(maps, bias=bias, training=training)


def _joint_kernel(convolutions):
    """The kernel of a sum of convolutions, and its number of groups."""
    groups = min(conv.groups for conv in convolutions)
    size = max(conv.kernel_size for conv in convolutions)
    kernels = []
    for conv in convolutions:
        kernel = ops.merge_groups(conv.masked_kernel(), conv.groups, groups)
        rim = [(size - conv.kernel_size) // 2] * 2
        if any(rim):
            kernel = tf.pad(kernel, [rim, rim, [0, 0], [0, 0]])
        kernels.append(kernel)
    return functools.reduce(operator.add, kernels), groups
