"""Grouped convolution, padded by (k−1)/2 on both sides, and its transpose.

TensorFlow's own kernels are the fastest form, but on a CPU their gradients
need oneDNN and float32 or bfloat16, and under XLA they crawl. There the
convolution is split into one per group. This file alone makes that choice.
"""

import functools

import tensorflow as tf
from tensorflow.python.ops import control_flow_util


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
    padding = _same_on_both_sides(kernel, stride)

    def convolve(part, part_kernel):
        return tf.nn.conv2d(part, part_kernel, stride, padding)

    if groups == 1 or _native_groups(inputs.dtype):
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
    for given, produced in zip(inputs.shape[1:3], output_size, strict=True):
        if given is not None and given != -(-produced // stride):
            raise ValueError(
                "`output_size` must shrink to the size of `inputs` under "
                f"`stride`. Received: output_size={tuple(output_size)}, "
                f"stride={stride}, inputs of shape {inputs.shape}."
            )
    padding = _same_on_both_sides(kernel, stride, explicit=True)
    outputs_per_group = kernel.shape[3] // groups

    def transpose(part, part_kernel):
        channels = part_kernel.shape[2] * (
            part_kernel.shape[3] // outputs_per_group
        )
        shape = (tf.shape(part)[0], *output_size, channels)
        return tf.nn.conv2d_transpose(part, part_kernel, shape, stride, padding)

    if groups == 1 or _native_groups(inputs.dtype):
        return transpose(inputs, kernel)
    return _split_and_concatenate(transpose, inputs, kernel, groups)


def _split_and_concatenate(convolve, inputs, kernel, groups):
    parts = zip(
        tf.split(inputs, groups, axis=-1),
        tf.split(kernel, groups, axis=-1),
        strict=True,
    )
    return tf.concat([convolve(*part) for part in parts], axis=-1)


def _same_on_both_sides(kernel, stride, explicit=False):
    """TensorFlow's SAME where it pads both sides alike, else explicit."""
    size = kernel.shape[0]
    if size % 2 == 0:
        raise ValueError(
            "The kernel size must be odd, so that (k−1)/2 pads both sides "
            f"alike. Received: kernel of shape {kernel.shape}."
        )
    if stride == 1 and not explicit:
        return "SAME"
    pad = [(size - 1) // 2] * 2
    return [[0, 0], pad, pad, [0, 0]]


def _check_groups(groups, **channels):
    for name, count in channels.items():
        if count is None or count % groups:
            raise ValueError(
                f"`groups` must divide the {name} channels. "
                f"Received: groups={groups}, {name} channels={count}."
            )


def _native_groups(dtype) -> bool:
    """Whether TensorFlow's own grouped kernel is the one to use here."""
    if tf.config.list_logical_devices("GPU"):
        return True
    if control_flow_util.GraphOrParentsInXlaContext(
        tf.compat.v1.get_default_graph()
    ):
        return False
    return _cpu_has_grouped_gradients(dtype)


@functools.cache
def _cpu_has_grouped_gradients(dtype) -> bool:
    """Tries a grouped gradient once: the honest test of oneDNN and dtype."""
    with tf.init_scope(), tf.device("/CPU:0"):
        inputs = tf.ones((1, 2, 2, 2), dtype)
        kernel = tf.ones((1, 1, 1, 2), dtype)
        try:
            with tf.GradientTape() as tape:
                tape.watch((inputs, kernel))
                outputs = tf.nn.conv2d(inputs, kernel, 1, "SAME")
            tape.gradient(outputs, (inputs, kernel))
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
            return False
    return True
