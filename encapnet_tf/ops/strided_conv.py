"""An ordinary strided convolution, each pass with the padding that suits it.

On the CPU oneDNN pads by itself in the forward pass and for the gradient of the
kernel, where a padded copy of the maps only costs time and memory. For the
gradient of the input its own padding loses the fast kernels: there the padded
maps are computed, and their rim is cut off.
"""

import tensorflow as tf


def strided_conv2d(
    inputs: tf.Tensor, kernel: tf.Tensor, *, stride: int
) -> tf.Tensor:
    """Convolves, padded by (k−1)/2 on both sides.

    Args:
        inputs: `(B, H, W, I)`; H and W are known.
        kernel: `(k, k, I, O)`, k odd.
        stride: Stride in both directions.

    Returns:
        `(B, ⌈H/stride⌉, ⌈W/stride⌉, O)`.

    Example:
        >>> strided_conv2d(tf.ones((1, 6, 6, 4)), tf.ones((3, 3, 4, 9)),
        ...                stride=2).shape
        TensorShape([1, 3, 3, 9])
    """
    rim = (kernel.shape[0] - 1) // 2
    size = inputs.shape[1:3]
    strides = {"strides": [1, stride, stride, 1]}
    # What lies behind the last window need not be padded.
    behind = [
        max(0, (-(-side // stride) - 1) * stride + rim + 1 - side)
        for side in size
    ]
    padded_here = strides | {
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, rim, behind[0], rim, behind[1], 0, 0],
    }

    @tf.custom_gradient
    def convolve(inputs, kernel):
        def gradient(upstream):
            padded = [side + 2 * rim for side in size]
            maps = tf.raw_ops.Conv2DBackpropInput(
                input_sizes=(tf.shape(inputs)[0], *padded, inputs.shape[3]),
                filter=kernel,
                out_backprop=upstream,
                padding="VALID",
                **strides,
            )
            return (
                tf.slice(maps, (0, rim, rim, 0), (-1, *size, -1)),
                tf.raw_ops.Conv2DBackpropFilter(
                    input=inputs,
                    filter_sizes=kernel.shape,
                    out_backprop=upstream,
                    **padded_here,
                ),
            )

        return tf.raw_ops.Conv2D(
            input=inputs, filter=kernel, **padded_here
        ), gradient

    return convolve(inputs, kernel)
