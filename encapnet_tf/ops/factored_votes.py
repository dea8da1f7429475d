"""What routing needs of votes: sums, squares and agreements.

A vote is linear in its lower capsule, so all of these are linear in features
of the lower capsules, and the votes (B, N, M, E) are never made.

Letters as in `ops.routed_moments`: C, P, F; D entries of a lower capsule, E of
a higher one.
"""

import math

import numpy as np
import tensorflow as tf


def products(vectors: tf.Tensor) -> tf.Tensor:
    """Products of every two entries, such that φ(x)·φ(y) = (x·y)²."""
    size = vectors.shape[-1]
    left, right = np.triu_indices(size)
    scale = np.where(left == right, 1, math.sqrt(2))
    left, right = np.eye(size)[:, left] * scale, np.eye(size)[:, right]
    return tf.matmul(vectors, tf.constant(left, vectors.dtype)) * tf.matmul(
        vectors, tf.constant(right, vectors.dtype)
    )


def origin_of(values: tf.Tensor, weights: tf.Tensor, axis: int) -> tf.Tensor:
    """The weighted mean of values, to measure them from.

    A constant to the gradient: routing gives the same from any origin.
    """
    total = tf.reduce_sum(values * weights, axis, keepdims=True)
    weight = tf.reduce_sum(weights, axis, keepdims=True)
    return tf.stop_gradient(tf.math.divide_no_nan(total, weight))


class VoteSums:
    """A linear map from the features of each channel to the higher capsules.

    Args:
        weights: `(M, E, C, F)`.
    """

    def __init__(self, weights: tf.Tensor):
        self._higher, self._dim, *self._inputs = weights.shape
        self._num_inputs = math.prod(self._inputs)
        # Matrices, of all higher capsules in one or with M in front.
        self._matrix = tf.reshape(weights, (-1, self._num_inputs))
        self._matrices = tf.reshape(
            weights, (self._higher, self._dim, self._num_inputs)
        )

    def sum(self, moments: tf.Tensor) -> tf.Tensor:
        """Moments `(B, C, F, M)` or `(B, C, F, 1)` to `(B, M, E)`."""
        if moments.shape[-1] == 1:
            moments = tf.reshape(moments, (-1, self._num_inputs))
            sums = tf.matmul(moments, self._matrix, transpose_b=True)
            return tf.reshape(sums, (-1, self._higher, self._dim))
        moments = tf.reshape(moments, (-1, self._num_inputs, self._higher))
        moments = tf.transpose(moments, (2, 0, 1))
        sums = tf.matmul(moments, self._matrices, transpose_b=True)
        return _swap(sums)

    def queries(self, higher: tf.Tensor) -> tf.Tensor:
        """The transposed map: `(B, M, E)` to `(B, C, F, M)`."""
        queries = tf.matmul(_swap(higher), self._matrices)
        queries = tf.transpose(queries, (1, 2, 0))
        return tf.reshape(queries, (-1, *self._inputs, self._higher))


class VoteGaussians:
    """What EM needs of votes, from and to the features (1, δ, φ(δ)).

    A vote is W_c δ + m, with δ = u − ū_c and m = W_c ū_c + bias. All means are
    measured from an origin among an image's votes for a higher capsule. So no
    small number comes out as a difference of large ones: that counts where
    clusters are narrow and far from zero. Inside, M goes first and B last but
    one, for products with W.

    Args:
        kernel: W `(D, C, M, E)`.
        bias: `(C, M, E)`.
        centres: ū `(B, C, 1, D)`.
        masses: The channels' weights in the origin, `(B, C, 1, 1)`.

    Attributes:
        origin: `(B, M, E)`.
    """

    def __init__(
        self,
        kernel: tf.Tensor,
        bias: tf.Tensor,
        centres: tf.Tensor,
        masses: tf.Tensor,
    ):
        kernel, bias = (tf.cast(t, centres.dtype) for t in (kernel, bias))
        self._size = kernel.shape[0]
        self._kernel = tf.transpose(kernel, (2, 1, 0, 3))
        self._squares = VoteSums(products(tf.transpose(kernel, (2, 3, 1, 0))))
        means = tf.matmul(tf.transpose(centres, (2, 1, 0, 3)), self._kernel)
        means += tf.transpose(bias, (1, 0, 2))[:, :, None]
        origin = origin_of(means, _higher_first(masses), axis=1)
        self._means = means - origin
        self.origin = _swap(origin[:, 0])

    def fit(self, moments: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Means and variances `(B, M, E)` and masses `(B, M)` of the votes."""
        sizes = (1, self._size, moments.shape[2] - self._size - 1)
        masses, sums, squares = tf.split(moments, sizes, axis=2)
        masses = _higher_first(masses)
        sums = tf.matmul(_higher_first(sums), self._kernel)
        total = tf.reduce_sum(masses, axis=1)
        means = tf.reduce_sum(sums + masses * self._means, axis=1)
        means = tf.math.divide_no_nan(means, total)
        # Σ (v̂ − μ)² = Σ (W_c δ)² + Σ (m − μ) (2 W_c δ + m − μ)
        offsets = self._means - means[:, None]
        squares = _swap(self._squares.sum(squares)) + tf.reduce_sum(
            offsets * (2 * sums + masses * offsets), axis=1
        )
        variances = tf.math.divide_no_nan(squares, total)
        total = tf.broadcast_to(total, tf.shape(means[..., :1]))
        return _swap(means), _swap(variances), _swap(total)[..., 0]

    def log_densities(
        self,
        means: tf.Tensor,
        variances: tf.Tensor,
        log_activations: tf.Tensor,
    ) -> tf.Tensor:
        """Queries for log a + log N(v̂; μ, σ) + constant, `(B, C, F, M)`."""
        precisions = 1 / variances
        offsets = self._means - _swap(means)[:, None]
        scaled = offsets * _swap(precisions)[:, None]
        linear = tf.matmul(scaled, self._kernel, transpose_b=True)
        distances = tf.reduce_sum(offsets * scaled, axis=-1, keepdims=True)
        widths = 0.5 * tf.reduce_sum(tf.math.log(variances), axis=-1)
        constant = (log_activations - widths)[:, None, None]
        return tf.concat(
            (
                constant - 0.5 * _higher_last(distances),
                -_higher_last(linear),
                self._squares.queries(-0.5 * precisions),
            ),
            axis=2,
        )


def _swap(values):
    """`(B, M, …)` to `(M, B, …)`, or back."""
    return tf.transpose(values, (1, 0, 2))


def _higher_first(moments):
    """`(B, C, F, M)` to `(M, C, B, F)`."""
    return tf.transpose(moments, (3, 1, 0, 2))


def _higher_last(queries):
    """`(M, C, B, F)` to `(B, C, F, M)`."""
    return tf.transpose(queries, (2, 1, 3, 0))
