"""Agreement routing without the votes.

A vote is W_c u_i, with W shared over space. So a weighted sum of votes is W_c
times a weighted sum of lower capsules, and the agreement of a vote with a
higher capsule v is u_i · W_cᵀ v: the votes (B, N, M, E) are never made. What
comes out is what `ops.routing`, the plain form, makes of them.

Letters as in `ops.routed_moments`: C, P, F; D entries of a lower capsule, E of
a higher one.
"""

import math

import numpy as np
import tensorflow as tf

from encapnet_tf.checks import check_choice, check_positive
from encapnet_tf.ops.routed_moments import routed_moments
from encapnet_tf.ops.routing import (
    SOFTMAX_AXES,
    EMRouting,
    activation_scores,
    narrowest_variances,
)
from encapnet_tf.ops.squash import at_least_float32, squash


def factored_dynamic_routing(
    lower: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor,
    *,
    num_iterations: int = 3,
    softmax_over: str = "lower",
    logits: tf.Tensor | None = None,
) -> tf.Tensor:
    """Routes the votes u W + bias as `dynamic_routing` does.

    Args:
        lower: u `(B, C, P, D)`: C capsule channels of P places.
        kernel: W `(D, C, M, E)`.
        bias: `(C, M, E)`.
        num_iterations: R ≥ 1.
        softmax_over: "lower" or "higher".
        logits: The first b `(C·P, M)`; zero where not given.

    Returns:
        Higher capsules `(B, M, E)`.

    Example:
        >>> kernel, bias = tf.ones((5, 3, 6, 7)), tf.zeros((3, 6, 7))
        >>> factored_dynamic_routing(tf.ones((2, 3, 4, 5)), kernel, bias).shape
        TensorShape([2, 6, 7])
    """
    check_positive(num_iterations=num_iterations)
    check_choice("softmax_over", softmax_over, SOFTMAX_AXES)
    features = _with_one(lower)
    mapping = _Mapping(_weights(kernel, bias, features.dtype))
    num_higher, dim = bias.shape[1:]
    if logits is not None:
        logits = tf.cast(logits, features.dtype)
    # Σ v over the rounds so far: the next b is logits + v̂ · Σ v.
    agreed = tf.zeros((tf.shape(features)[0], num_higher, dim), features.dtype)
    for iteration in range(num_iterations):
        if iteration == 0 and logits is None:
            num_lower = features.shape[1] * features.shape[2]
            summands = num_lower if softmax_over == "lower" else num_higher
            moments = _same_moments(features) / summands
        else:
            moments = routed_moments(
                features,
                mapping.queries(agreed),
                softmax_over=softmax_over,
                logits=logits,
            )
        capsules = squash(mapping.sum(moments))
        agreed += capsules
    return capsules


def factored_em_routing(
    lower: tf.Tensor,
    activations: tf.Tensor,
    kernel: tf.Tensor,
    bias: tf.Tensor,
    beta_v: tf.Tensor,
    beta_a: tf.Tensor,
    *,
    num_iterations: int = 3,
) -> EMRouting:
    """Routes the votes u W + bias as `em_routing` does.

    A Gaussian takes of the votes v̂ only weighted sums of (v̂, v̂², 1), and its
    log density is linear in these three. They in turn are linear in the
    products of two entries of (1, u), which are the features here. In float32
    such a variance is good to a millionth of the votes' mean square, which is
    the narrowest that a cluster gets.

    Args:
        lower: u `(B, C, P, D)`: C capsule channels of P places.
        activations: a of the lower capsules `(B, C·P)`, not negative.
        kernel: W `(D, C, M, E)`.
        bias: `(C, M, E)`.
        beta_v: Cost of describing a capsule, `(M,)`.
        beta_a: Threshold of activating a capsule, `(M,)`.
        num_iterations: R ≥ 1.

    Returns:
        An `EMRouting`.
    """
    check_positive(num_iterations=num_iterations)
    linear = _with_one(lower)
    features = _products(linear)
    statistics = _Statistics(_weights(kernel, bias, linear.dtype))
    activations, beta_v, beta_a = (
        tf.cast(value, linear.dtype) for value in (activations, beta_v, beta_a)
    )
    gains = tf.reshape(activations, (-1, *features.shape[1:3]))
    moments = _same_moments(features * gains[..., None]) / bias.shape[1]
    for iteration in range(num_iterations):
        means, variances, masses = statistics.fit(moments)
        if iteration == 0:
            narrowest = narrowest_variances(variances)
        variances = tf.maximum(variances, narrowest)
        scores = activation_scores(variances, masses, beta_v, beta_a, iteration)
        if iteration < num_iterations - 1:
            log_activations = tf.math.log_sigmoid(scores)
            moments = routed_moments(
                features,
                statistics.log_densities(means, variances, log_activations),
                softmax_over="higher",
                gains=gains,
            )
    return EMRouting(means, tf.sigmoid(scores))


def _with_one(lower):
    """The features (1, u): `(B, C, P, D + 1)`."""
    lower = at_least_float32(lower)
    return tf.pad(lower, [[0, 0]] * 3 + [[1, 0]], constant_values=1)


def _weights(kernel, bias, dtype):
    """The votes' weights on the features (1, u): `(M, E, C, D + 1)`."""
    weights = tf.concat((bias[None], kernel), axis=0)
    return tf.transpose(tf.cast(weights, dtype), (2, 3, 1, 0))


def _products(vectors):
    """Products of every two entries, such that φ(x)·φ(y) = (x·y)²."""
    size = vectors.shape[-1]
    left, right = np.triu_indices(size)
    scale = np.where(left == right, 1, math.sqrt(2))
    left, right = np.eye(size)[:, left] * scale, np.eye(size)[:, right]
    return tf.matmul(vectors, tf.constant(left, vectors.dtype)) * tf.matmul(
        vectors, tf.constant(right, vectors.dtype)
    )


def _same_moments(features):
    """Σ_p f, the same for every higher capsule: `(B, C, F, 1)`."""
    return tf.reduce_sum(features, axis=2)[..., None]


class _Mapping:
    """A linear map from the features of each channel to the higher capsules.

    Args:
        weights: `(M, E, C, F)`.
    """

    def __init__(self, weights):
        self._higher, self._dim, *self._inputs = weights.shape
        self._num_inputs = math.prod(self._inputs)
        # Matrices, of all higher capsules in one or with M in front.
        self._matrix = tf.reshape(weights, (-1, self._num_inputs))
        self._matrices = tf.reshape(
            weights, (self._higher, self._dim, self._num_inputs)
        )

    def sum(self, moments):
        """Moments `(B, C, F, M)` or `(B, C, F, 1)` to `(B, M, E)`."""
        if moments.shape[-1] == 1:
            moments = tf.reshape(moments, (-1, self._num_inputs))
            sums = tf.matmul(moments, self._matrix, transpose_b=True)
            return tf.reshape(sums, (-1, self._higher, self._dim))
        moments = tf.reshape(moments, (-1, self._num_inputs, self._higher))
        moments = tf.transpose(moments, (2, 0, 1))
        sums = tf.matmul(moments, self._matrices, transpose_b=True)
        return tf.transpose(sums, (1, 0, 2))

    def queries(self, higher):
        """The transposed map: `(B, M, E)` to `(B, C, F, M)`."""
        queries = tf.matmul(tf.transpose(higher, (1, 0, 2)), self._matrices)
        queries = tf.transpose(queries, (1, 2, 0))
        return tf.reshape(queries, (-1, *self._inputs, self._higher))


class _Statistics:
    """What EM takes of votes, from and to the products of (1, u).

    Args:
        weights: Of the votes on (1, u), `(M, E, C, D + 1)`.
    """

    def __init__(self, weights):
        products = _products(weights)
        self._votes, self._squares = _Mapping(weights), _Mapping(products)
        self._size = weights.shape[-1]
        self._num_others = products.shape[-1] - self._size
        # The first products are 1·1 and 1·u, the latter times √2.
        scale = [1.0] + [math.sqrt(0.5)] * (self._size - 1)
        self._scale = tf.constant(scale, weights.dtype)[:, None]

    def fit(self, moments):
        """Means `(B, M, E)`, variances and masses `(B, M)` of the votes."""
        linear = moments[:, :, : self._size] * self._scale
        masses = tf.reduce_sum(linear[:, :, 0], axis=1)[..., None]
        means = tf.math.divide_no_nan(self._votes.sum(linear), masses)
        squares = tf.math.divide_no_nan(self._squares.sum(moments), masses)
        masses = tf.broadcast_to(masses[..., 0], tf.shape(means)[:2])
        return means, squares - tf.square(means), masses

    def log_densities(self, means, variances, log_activations):
        """Queries for log a + log N(v̂; μ, σ) + constant, `(B, C, F, M)`."""
        precisions = 1 / variances
        constants = log_activations - 0.5 * tf.reduce_sum(
            tf.square(means) * precisions + tf.math.log(variances), axis=-1
        )
        linear = self._votes.queries(means * precisions)
        first = tf.one_hot([0], self._size, axis=0, dtype=linear.dtype)
        linear += first * constants[:, None, None]
        linear = tf.pad(
            linear * self._scale,
            [[0, 0], [0, 0], [0, self._num_others], [0, 0]],
        )
        return self._squares.queries(-0.5 * precisions) + linear
