"""The kernel of a grouped convolution, written for fewer groups."""

import numpy as np
import tensorflow as tf


def merge_groups(kernel: tf.Tensor, groups: int, into: int = 1) -> tf.Tensor:
    """Joins neighbouring groups; zeros stand where their channels do not meet.

    The convolution stays what it was. Wide groups may be faster than narrow
    ones for all the zeros they multiply, and a kernel of one group can be
    added to that of an ordinary convolution.

    Args:
        kernel: `(k, k, I, groups · O)`.
        groups: Number of groups.
        into: Number of groups after, a divisor of `groups`.

    Returns:
        `(k, k, groups/into · I, groups · O)`.

    Example:
        >>> merge_groups(tf.ones((1, 1, 1, 4)), groups=2)[0, 0].numpy()
        array([[1., 1., 0., 0.],
               [0., 0., 1., 1.]], dtype=float32)
    """
    kernel = tf.convert_to_tensor(kernel)
    if into == groups:
        return kernel
    joined = groups // into
    *_, inputs, outputs = kernel.shape
    row_groups = np.repeat(np.arange(joined), inputs)
    column_groups = np.repeat(np.arange(groups), outputs // groups) % joined
    meet = tf.constant(row_groups[:, None] == column_groups, kernel.dtype)
    return tf.tile(kernel, (1, 1, joined, 1)) * meet
