"""Grouped convolution, padded by (k−1)/2 on both sides, and its transpose.

TensorFlow's own kernels are the fastest form, but on a CPU their gradients
need oneDNN and float32 or bfloat16, and under XLA they crawl. There the
convolution is split into one per group. Narrow groups are merged. Ungrouped
convolutions on small maps are matrix products, and other strided ones padded
pass by pass, where that is faster. This file alone makes these choices.
"""

import functools

import tensorflow as tf

from encapnet_tf.ops.grouped_kernel import merge_groups
from encapnet_tf.ops.placement import on_gpu, on_this_cpu
from encapnet_tf.ops.row_conv import row_conv2d
from encapnet_tf.ops.strided_conv import strided_conv2d
from encapnet_tf.tensorflow_internals import under_xla

# Channels that a group has at least, in or out: what a vector register of any
# x86 CPU holds, or, where every group is an operation of its own, enough for
# one. Measured: a third to a half of the time with groups of two.
_NATIVE_WIDTH = 8
_SPLIT_WIDTH = 32


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
    if groups > 1 and _float32_is_faster(inputs.dtype):
        return _in_float32(
            grouped_conv2d, inputs, kernel, groups=groups, stride=stride
        )
    pad, padding = _padding(kernel, stride)

    def convolve(part, part_kernel):
        if pad:
            part = tf.pad(part, [[0, 0], pad, pad, [0, 0]])
        return tf.nn.conv2d(part, part_kernel, stride, padding)

    if groups == 1 and _products_are_faster(inputs, kernel.shape[0], stride):
        forward = convolve if _native_is_faster(inputs, kernel) else None
        return row_conv2d(inputs, kernel, stride=stride, forward=forward)
    if groups == 1 and _padding_by_pass_is_faster(inputs, stride):
        return strided_conv2d(inputs, kernel, stride=stride)
    native = groups == 1 or _native_groups(inputs.dtype)
    kernel, groups = _merge_narrow(kernel, groups, native)
    if native:
        return convolve(inputs, kernel)
    return _split_and_concatenate(convolve, inputs, kernel, groups)


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
    if groups > 1 and _float32_is_faster(inputs.dtype):
        return _in_float32(
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
    native = groups == 1 or _native_groups(inputs.dtype)
    kernel, groups = _merge_narrow(kernel, groups, native)
    pad, padding = _padding(kernel, stride)
    first, last = pad or (0, 0)
    height, width = (side + first + last for side in output_size)
    outputs_per_group = kernel.shape[3] // groups

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

    if native:
        return transpose(inputs, kernel)
    return _split_and_concatenate(transpose, inputs, kernel, groups)


def _in_float32(convolve, inputs, kernel, **arguments):
    inputs_and_kernel = tf.cast(inputs, tf.float32), tf.cast(kernel, tf.float32)
    return tf.cast(convolve(*inputs_and_kernel, **arguments), inputs.dtype)


def _merge_narrow(kernel, groups, native):
    """Returns the kernel and the number of groups that suit this machine."""
    if native and not on_this_cpu():
        return kernel, groups
    width = max(kernel.shape[2], kernel.shape[3] // groups)
    least = _NATIVE_WIDTH if native else _SPLIT_WIDTH
    joined = next(
        count
        for count in range(1, groups + 1)
        if groups % count == 0 and (count * width >= least or count == groups)
    )
    return merge_groups(kernel, groups, groups // joined), groups // joined


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


def _products_are_faster(inputs, kernel_size, stride) -> bool:
    """Whether `row_conv2d` beats TensorFlow's own kernel here.

    Measured on a CPU with batches of 64: forward and backward together it
    takes 0.36 to 0.87 of the time with results of up to four rows, and 0.82
    with 7×7 kernels at stride 2 and results of eight.
    """
    height, width = inputs.shape[1:3]
    known = inputs.dtype in (tf.float32, tf.bfloat16) and height and width
    if kernel_size == 1 or not known:
        return False
    most = 8 if kernel_size >= 7 and stride > 1 else 4
    small = -(-max(height, width) // stride) <= most
    return small and on_this_cpu()


def _padding_by_pass_is_faster(inputs, stride) -> bool:
    """Whether `strided_conv2d` beats a padded copy of the maps.

    Measured as above with 3×3 kernels on maps of 32×32 and 16×16: 0.85 and
    0.83 of the time.
    """
    known = inputs.dtype == tf.float32 and None not in inputs.shape[1:3]
    return stride > 1 and known and on_this_cpu()


def _native_is_faster(inputs, kernel) -> bool:
    """Whether TensorFlow's own kernel beats `row_conv2d` forward.

    Measured as above: 0.5 to 0.9 of the time with 3×3 kernels and in bfloat16,
    but twice the time with 7×7 kernels in float32.
    """
    return kernel.shape[0] == 3 or inputs.dtype == tf.bfloat16


def _float32_is_faster(dtype) -> bool:
    """Whether groups of a few channels are quicker in a wider type."""
    return dtype == tf.bfloat16 and on_this_cpu()


def _native_groups(dtype) -> bool:
    """Whether TensorFlow's own grouped kernel is the one to use here."""
    if on_gpu():
        return True
    return not under_xla() and _cpu_has_grouped_gradients(dtype)


@functools.cache
def _cpu_has_grouped_gradients(dtype) -> bool:
    """Tries a grouped gradient once: the honest test of oneDNN and dtype."""
    with tf.init_scope(), tf.device("/CPU:0"):
        inputs = tf.ones((2, 6, 6, 8), dtype)
        kernel = tf.ones((3, 3, 2, 8), dtype)
        call = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        try:
            # A gradient tape does not record inside an init_scope.
            tf.raw_ops.Conv2DBackpropInput(
                input_sizes=inputs.shape,
                filter=kernel,
                out_backprop=inputs,
                **call,
            )
            tf.raw_ops.Conv2DBackpropFilter(
                input=inputs,
                filter_sizes=kernel.shape,
                out_backprop=inputs,
                **call,
            )
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
            return False
    return True
