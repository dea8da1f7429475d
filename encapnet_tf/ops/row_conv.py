"""A convolution on a small map, its gradients and more as matrix products.

On the CPU TensorFlow's own kernels take two to three times as long there, for
they also multiply what was padded. Here the columns are padded, the rows are
not: every product takes only the rows of map and kernel that meet.
"""

from collections.abc import Callable

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
            upstream = rows.listed(upstream)
            return (
                rows.input_gradient(kernel, upstream),
                rows.kernel_gradient(windows or rows.windows(inputs), upstream),
            )

        if forward:
            return forward(inputs, kernel), gradient
        return rows.convolve(windows, kernel), gradient

    return convolve(inputs, kernel)


class _Rows:
    """Which rows of a map, of a kernel and of the result meet.

    A map is a list of its rows, each a matrix with a line per image and column
    of the result: of the result itself `(B·W', O)`; of the input what the
    kernel covers there, its window `(B·W', k·I)`.
    """

    def __init__(self, input_size, kernel_shape, stride):
        self._height, self._width = input_size
        self._size, _, self._inputs, self._filters = kernel_shape
        self._stride = stride
        self._pad = (self._size - 1) // 2
        self._out_height = -(-self._height // stride)
        self._out_width = -(-self._width // stride)

    def windows(self, inputs):
        """Lists the rows of the input."""
        pad = [self._pad] * 2
        padded = tf.pad(inputs, [[0, 0], [0, 0], pad, [0, 0]])
        starts = range(0, self._out_width * self._stride, self._stride)
        parts = [padded[:, :, s : s + self._size] for s in starts]
        return self.listed(tf.stack(parts, axis=2))

    def listed(self, maps):
        """Lists the rows of `(B, H, W', …)`."""
        columns = maps.shape[3:].num_elements()
        rows = tf.unstack(maps, axis=1)
        return [tf.reshape(row, (-1, columns)) for row in rows]

    def convolve(self, windows, kernel):
        """One product per row of the kernel, added to all rows it served."""
        shares = [[] for _ in range(self._out_height)]
        for kernel_row in range(self._size):
            met, results = self._meetings(kernel_row)
            if not results:
                continue
            products = tf.matmul(
                tf.concat([windows[row] for row in met], axis=0),
                tf.reshape(kernel[kernel_row], (-1, self._filters)),
            )
            shape = (-1, self._out_width, self._filters)
            for row, share in zip(
                results, tf.split(products, len(results)), strict=True
            ):
                shares[row].append(tf.reshape(share, shape))
        return _sum_rows(shares)

    def kernel_gradient(self, windows, upstream):
        """One product per row of the kernel, over all rows it met."""
        gradients = []
        for kernel_row in range(self._size):
            met, results = self._meetings(kernel_row)
            if not results:
                shape = (self._size * self._inputs, self._filters)
                gradients.append(tf.zeros(shape, windows[0].dtype))
                continue
            gradients.append(
                tf.matmul(
                    tf.concat([windows[row] for row in met], axis=0),
                    tf.concat([upstream[row] for row in results], axis=0),
                    transpose_a=True,
                )
            )
        shape = (self._size, self._size, self._inputs, self._filters)
        return tf.reshape(tf.stack(gradients), shape)

    def input_gradient(self, kernel, upstream):
        """One product per row of the kernel, added to all rows it met."""
        shares = [[] for _ in range(self._height)]
        for kernel_row in range(self._size):
            met, results = self._meetings(kernel_row)
            if not results:
                continue
            windows = tf.matmul(
                tf.concat([upstream[row] for row in results], axis=0),
                tf.reshape(kernel[kernel_row], (-1, self._filters)),
                transpose_b=True,
            )
            shared = tf.split(self._overlay(windows), len(met))
            for row, share in zip(met, shared, strict=True):
                shares[row].append(share)
        return _sum_rows(shares)

    def _meetings(self, kernel_row):
        """The rows of the input that a kernel's row meets, and for which."""
        results = [
            row
            for row in range(self._out_height)
            if 0 <= row * self._stride + kernel_row - self._pad < self._height
        ]
        met = [row * self._stride + kernel_row - self._pad for row in results]
        return met, results

    def _overlay(self, windows):
        """Adds the windows of rows where they lie: `(…, W, I)`."""
        places = np.arange(self._out_width * self._size)
        columns = places // self._size * self._stride
        columns += places % self._size - self._pad
        lie = tf.constant(
            np.arange(self._width)[:, None] == columns, windows.dtype
        )
        shape = (-1, self._out_width * self._size, self._inputs)
        return tf.matmul(lie, tf.reshape(windows, shape))


def _sum_rows(shares):
    """Stacks rows, each the sum of its shares; a row without any is zero.

    Not add_n: its order, and so its rounding, changes from call to call.
    """
    nothing = tf.zeros_like(next(share for share in shares if share)[0])
    rows = [
        tf.reduce_sum(tf.stack(share or [nothing]), axis=0) for share in shares
    ]
    return tf.stack(rows, axis=1)
