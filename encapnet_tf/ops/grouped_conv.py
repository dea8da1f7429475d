"""Grouped convolution, padded by (k−1)/2 on both sides, and its transpose.

`ops.forms` chooses the form: TensorFlow's own kernel, one convolution per
group, narrow groups merged, matrix products or padding pass by pass.
"""

import tensorflow as tf

from encapnet_tf.ops import forms
from encapnet_tf.ops.grouped_kernel import merge_groups
from encapnet_tf.ops.row_conv import row_conv2d
from encapnet_tf.ops.strided_conv import strided_conv2d


def grouped_conv2d(
    inputs: tf.Tensor, kernel: tf.Tensor, *, groups: int = 1, stride: int = 1
) -> tf.Tensor:
    """Convolves each group of channels with its own part of the kernel.

    Args:
        inputs: `(B, H, W, groups · I)`.
        kernel: `(k, k, I, groups · O)`, k odd; group g owns the output
            channels g·O … g·O+O−1.
        groups: Number of groups; 1 is an ordinary convolution.
        stride: Stride in both directions.

    Returns:
        `(B, ⌈H/stride⌉, ⌈W/stride⌉, groups · O)`.

    Example:
        >>> grouped_conv2d(tf.ones((1, 4, 4, 6)), tf.ones((3, 3, 2, 9)),
        ...                groups=3, stride=2).shape
        TensorShape([1, 2, 2, 9])
    """
    inputs, kernel = tf.convert_to_tensor(inputs), tf.convert_to_tensor(kernel)
    _check_groups(groups, inputs=inputs.shape[-1], outputs=kernel.shape[-1])
    _check_channels(inputs, kernel, groups * kernel.shape[2])
    if kernel.shape[0] == 1 and stride > 1:
        # TensorFlow's own strided 1×1 form corrupts memory in the gradient of
        # the kernel (oneDNN, TensorFlow 2.21).
        inputs, stride = inputs[:, ::stride, ::stride], 1
    form = forms.convolution(inputs, kernel, groups, stride)
    if form.dtype != inputs.dtype:
        return _in_dtype(
            form.dtype,
            grouped_conv2d,
            inputs,
            kernel,
            groups=groups,
            stride=stride,
        )
    pad, padding = _padding(kernel, stride)

    def convolve(part, part_kernel):
        if pad:
            part = tf.pad(part, [[0, 0], pad, pad, [0, 0]])
        return tf.nn.conv2d(part, part_kernel, stride, padding)

    if form.kind.startswith("rows"):
        forward = convolve if form.kind == "rows_backward" else None
        return row_conv2d(inputs, kernel, stride=stride, forward=forward)
    if form.kind == "by_pass":
        return strided_conv2d(inputs, kernel, stride=stride)
    kernel = merge_groups(kernel, groups, form.groups)
    if form.kind == "native":
        return convolve(inputs, kernel)
    return _split_and_concatenate(convolve, inputs, kernel, form.groups)


def grouped_conv2d_transpose(
    inputs: tf.Tensor,
    kernel: tf.Tensor,
    *,
    groups: int = 1,
    stride: int = 1,
    output_size: tuple[int, int],
) -> tf.Tensor:
    """Transposes `grouped_conv2d`: from its output's shape to its input's.

    Args:
        inputs: `(B, H, W, groups · O)`.
        kernel: `(k, k, I, groups · O)`, the kernel of the forward direction.
        groups: Number of groups.
        stride: Stride of the forward direction.
        output_size: Height and width of the result. With stride 2 both 2H−1
            and 2H are possible, so it has to be said.

    Returns:
        `(B, *output_size, groups · I)`.
    """
    inputs, kernel = tf.convert_to_tensor(inputs), tf.convert_to_tensor(kernel)
    _check_groups(groups, inputs=inputs.shape[-1], outputs=kernel.shape[-1])
    _check_channels(inputs, kernel, kernel.shape[3])
    form = forms.transposed_convolution(inputs, kernel, groups)
    if form.dtype != inputs.dtype:
        return _in_dtype(
            form.dtype,
            grouped_conv2d_transpose,
            inputs,
            kernel,
            groups=groups,
            stride=stride,
            output_size=output_size,
        )
    if kernel.shape[0] == 1 and stride > 1:
        # As above: not TensorFlow's strided 1×1 form.
        kernel = tf.pad(kernel, [[1, 1], [1, 1], [0, 0], [0, 0]])
    for given, produced in zip(inputs.shape[1:3], output_size, strict=True):
        if given is not None and given != -(-produced // stride):
            raise ValueError(
                "`output_size` must shrink to the size of `inputs` under "
                f"`stride`. Received: output_size={tuple(output_size)}, "
                f"stride={stride}, inputs of shape {inputs.shape}."
            )
    kernel = merge_groups(kernel, groups, form.groups)
    pad, padding = _padding(kernel, stride)
    first, last = pad or (0, 0)
    height, width = (side + first + last for side in output_size)
    outputs_per_group = kernel.shape[3] // form.groups

    def transpose(part, part_kernel):
        channels = part_kernel.shape[2] * (
            part_kernel.shape[3] // outputs_per_group
        )
        shape = (tf.shape(part)[0], height, width, channels)
        maps = tf.nn.conv2d_transpose(part, part_kernel, shape, stride, padding)
        if not pad:
            return maps
        # The gradient of `slice` is quick, that of `maps[…]` is not.
        return tf.slice(maps, (0, first, first, 0), (-1, *output_size, -1))

    if form.kind == "native":
        return transpose(inputs, kernel)
    return _split_and_concatenate(transpose, inputs, kernel, form.groups)


def _in_dtype(dtype, convolve, inputs, kernel, **arguments):
    inputs_and_kernel = tf.cast(inputs, dtype), tf.cast(kernel, dtype)
    return tf.cast(convolve(*inputs_and_kernel, **arguments), inputs.dtype)


def _split_and_concatenate(convolve, inputs, kernel, groups):
    parts = zip(
        tf.split(inputs, groups, axis=-1),
        tf.split(kernel, groups, axis=-1),
        strict=True,
    )
    return tf.concat([convolve(*part) for part in parts], axis=-1)


def _padding(kernel, stride):
    """What to add on both sides, and what to tell TensorFlow.

    At stride 1 TensorFlow's SAME pads both sides alike. At stride 2 it does
    not, and its explicit padding has no grouped gradients: pad first.
    """
    size = kernel.shape[0]
    if size % 2 == 0:
        raise ValueError(
            "The kernel size must be odd, so that (k−1)/2 pads both sides "
            f"alike. Received: kernel of shape {kernel.shape}."
        )
    if stride == 1:
        return None, "SAME"
    return [(size - 1) // 2] * 2, "VALID"


def _check_groups(groups, **channels):
    for name, count in channels.items():
        if count is None or count % groups:
            raise ValueError(
                f"`groups` must divide the {name} channels. "
                f"Received: groups={groups}, {name} channels={count}."
            )


def _check_channels(inputs, kernel, expected):
    """Refuses what TensorFlow would take as another number of groups."""
    if inputs.shape[-1] != expected:
        raise ValueError(
            f"The kernel needs inputs with {expected} channels. Received: "
            f"inputs of shape {inputs.shape}, kernel of shape {kernel.shape}."
        )
