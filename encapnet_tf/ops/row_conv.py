"""A convolution on a small map, its gradients and more as matrix products.

On the CPU TensorFlow's own kernels take two to three times as long there, for
they also multiply what was padded. Here the columns are padded, the rows are
not: every product takes only the rows of map and kernel that meet.
"""

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf


def row_conv2d(
    inputs: tf.Tensor,
    kernel: tf.Tensor,
    *,
    stride: int = 1,
    forward: Callable[[tf.Tensor, tf.Tensor], tf.Tensor] | None = None,
) -> tf.Tensor:
    """Convolves, padded by (k−1)/2 on both sides.

    Args:
        inputs: `(B, H, W, I)`; H and W are known.
        kernel: `(k, k, I, O)`, k odd.
        stride: Stride in both directions.
        forward: Convolves instead where that is faster; the gradients are
            matrix products all the same.

    Returns:
        `(B, ⌈H/stride⌉, ⌈W/stride⌉, O)`.

    Example:
        >>> row_conv2d(tf.ones((1, 4, 4, 6)), tf.ones((5, 5, 6, 9)),
        ...            stride=2).shape
        TensorShape([1, 2, 2, 9])
    """

    @tf.custom_gradient
    def convolve(inputs, kernel):
        rows = _Rows(inputs.shape[1:3], kernel.shape, stride)
        windows = None if forward else rows.windows(inputs)

        def gradient(upstream):
            return rows.gradients(
                rows.windows(inputs) if forward else windows, kernel, upstream
            )

        if forward:
            return forward(inputs, kernel), gradient
        return rows.convolve(windows, kernel), gradient

    return convolve(inputs, kernel)


class _Meeting(NamedTuple):
    """Rows that one row of the kernel brings together.

    Attributes:
        kernel_row: The row of the kernel.
        remainder: That of the input's rows, divided by the stride.
        first_input: The first of them, among the rows of this remainder.
        first_result: The first row of the result.
        count: How many rows of each.
    """

    kernel_row: int
    remainder: int
    first_input: int
    first_result: int
    count: int


class _Rows:
    """Which rows of a map, of a kernel and of the result meet.

    Maps are held row by row: of the result `(H', B·W', O)`; of the input what
    the kernel covers there, its windows `(s·H', B·W', k·I)`. The input's rows
    are sorted by their remainder under the stride s, so that those which a row
    of the kernel meets lie side by side: to take them copies nothing.
    """

    def __init__(self, input_size, kernel_shape, stride):
        self._height, self._width = input_size
        self._size, _, self._inputs, self._filters = kernel_shape
        self._stride = stride
        self._pad = (self._size - 1) // 2
        self._out_height = -(-self._height // stride)
        self._out_width = -(-self._width // stride)
        # Of the padded input: what each column of the result covers.
        first = np.arange(self._out_width)[:, None] * stride
        self._covered = (first + np.arange(self._size)).ravel()
        meetings = map(self._meeting, range(self._size))
        self._meetings = [meeting for meeting in meetings if meeting.count > 0]

    def _meeting(self, kernel_row):
        ahead, remainder = divmod(kernel_row - self._pad, self._stride)
        # Rows of this remainder: those that the input has.
        most = -(-(self._height - remainder) // self._stride)
        first = max(0, -ahead)
        count = min(self._out_height, most - ahead) - first
        return _Meeting(kernel_row, remainder, first + ahead, first, count)

    def windows(self, inputs):
        """Returns the windows of the input."""
        below = self._out_height * self._stride - self._height
        sides = [self._pad] * 2
        padded = tf.pad(inputs, [[0, 0], [0, below], sides, [0, 0]])
        columns = self._width + 2 * self._pad
        shape = (-1, self._out_height, self._stride, columns * self._inputs)
        rows = tf.transpose(tf.reshape(padded, shape), (2, 1, 0, 3))
        count = self._stride * self._out_height
        rows = tf.reshape(rows, (count, -1, columns, self._inputs))
        windows = tf.gather(rows, self._covered, axis=2)
        return tf.reshape(windows, (count, -1, self._size * self._inputs))

    def convolve(self, windows, kernel):
        """One product per row of the kernel, added to all rows it served."""
        shares = []
        matrices = self._matrices(kernel)
        for meeting in self._meetings:
            product = tf.matmul(
                self._met(windows, meeting), matrices[meeting.kernel_row]
            )
            shares.append(
                self._among(product, meeting.first_result, meeting.count)
            )
        shape = (self._out_height, -1, self._out_width, self._filters)
        return tf.transpose(tf.reshape(_sum(shares), shape), (1, 0, 2, 3))

    def gradients(self, windows, kernel, upstream):
        """Two products per row of the kernel: of the input, of the kernel."""
        rows = tf.transpose(upstream, (1, 0, 2, 3))
        rows = tf.reshape(rows, (self._out_height, -1, self._filters))
        matrices = self._matrices(kernel)
        shape = (self._size * self._inputs, self._filters)
        kernel_rows = [tf.zeros(shape, kernel.dtype)] * self._size
        shares = [[] for _ in range(self._stride)]
        for meeting in self._meetings:
            served = _joined(rows, meeting.first_result, meeting.count)
            kernel_rows[meeting.kernel_row] = tf.matmul(
                self._met(windows, meeting), served, transpose_a=True
            )
            covered = tf.matmul(
                served, matrices[meeting.kernel_row], transpose_b=True
            )
            shares[meeting.remainder].append(
                self._among(
                    self._overlay(covered), meeting.first_input, meeting.count
                )
            )
        return self._from_rows(shares), tf.reshape(
            tf.stack(kernel_rows), kernel.shape
        )

    def _from_rows(self, shares):
        """The input's gradient from shares of it, listed by remainder."""
        nothing = tf.zeros_like(next(filter(None, shares))[0])
        rows = tf.stack([_sum(share or [nothing]) for share in shares])
        row = self._width * self._inputs
        shape = (self._stride, self._out_height, -1, row)
        rows = tf.transpose(tf.reshape(rows, shape), (2, 1, 0, 3))
        height = self._stride * self._out_height
        maps = tf.reshape(rows, (-1, height, self._width, self._inputs))
        return maps[:, : self._height] if height > self._height else maps

    def _matrices(self, kernel):
        """The rows of the kernel, each `(k·I, O)`."""
        shape = (self._size, self._size * self._inputs, self._filters)
        return tf.unstack(tf.reshape(kernel, shape))

    def _met(self, windows, meeting):
        """The windows that a row of the kernel meets, one below the other."""
        first = meeting.remainder * self._out_height + meeting.first_input
        return _joined(windows, first, meeting.count)

    def _among(self, product, first, count):
        """Puts `count` rows among H' rows; the others are zero."""
        rows = tf.reshape(product, (count, -1, product.shape[-1]))
        after = self._out_height - first - count
        if not (first or after):
            return rows
        return tf.pad(rows, [[first, after], [0, 0], [0, 0]])

    def _overlay(self, windows):
        """Adds the windows of rows where they lie: `(…, W, I)`."""
        columns = np.arange(self._width)[:, None] + self._pad
        lie = tf.constant(columns == self._covered, windows.dtype)
        shape = (-1, len(self._covered), self._inputs)
        return tf.matmul(lie, tf.reshape(windows, shape))


def _joined(rows, first, count):
    """Rows `(…, lines, columns)`, `count` of them, one below the other."""
    if count < rows.shape[0]:
        rows = tf.slice(rows, (first, 0, 0), (count, -1, -1))
    return tf.reshape(rows, (-1, rows.shape[-1]))


def _sum(shares):
    """Not add_n: its order, and so its rounding, changes from call to call."""
    return functools.reduce(operator.add, shares)
