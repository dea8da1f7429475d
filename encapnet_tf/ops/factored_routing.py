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
            sums = mapping.sum_alike(features / summands)
        else:
            moments = routed_moments(
                features,
                mapping.queries(agreed),
                softmax_over=softmax_over,
                logits=logits,
            )
            sums = mapping.sum(moments)
        capsules = squash(sums)
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
    mapping = _Mapping(_statistics(_weights(kernel, bias, linear.dtype)))
    activations, beta_v, beta_a = (
        tf.cast(value, linear.dtype) for value in (activations, beta_v, beta_a)
    )
    gains = tf.reshape(activations, (-1, *features.shape[1:3]))
    num_higher, dim = bias.shape[1:]
    sums = mapping.sum_alike(features * gains[..., None] / num_higher)
    for iteration in range(num_iterations):
        means, variances, masses = _fit(sums, dim)
        if iteration == 0:
            narrowest = narrowest_variances(variances)
        variances = tf.maximum(variances, narrowest)
        scores = activation_scores(variances, masses, beta_v, beta_a, iteration)
        if iteration < num_iterations - 1:
            moments = routed_moments(
                features,
                mapping.queries(_log_density(means, variances, scores)),
                softmax_over="higher",
                gains=gains,
            )
            sums = mapping.sum(moments)
    return EMRouting(means, tf.sigmoid(scores))


def _fit(sums, dim):
    """Means, variances and masses from the sums of v̂, v̂² and 1."""
    votes, squares, masses = tf.split(sums, (dim, dim, 1), axis=-1)
    means = tf.math.divide_no_nan(votes, masses)
    variances = tf.math.divide_no_nan(squares, masses) - tf.square(means)
    return means, variances, masses[..., 0]


def _log_density(means, variances, scores):
    """The factors of v̂, v̂² and 1 in log a + log N(v̂; μ, σ) + constant."""
    precisions = 1 / variances
    rest = tf.reduce_sum(
        tf.square(means) * precisions + tf.math.log(variances),
        axis=-1,
        keepdims=True,
    )
    rest = tf.math.log_sigmoid(scores)[..., None] - 0.5 * rest
    return tf.concat((means * precisions, -0.5 * precisions, rest), axis=-1)


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


def _statistics(weights):
    """The weights of (v̂, v̂², 1) on the products: `(M, 2E + 1, C, F)`."""
    squares = _products(weights)
    size, num_products = weights.shape[-1], squares.shape[-1]
    # The first products are 1·1 and 1·u, these scaled by √2.
    scale = tf.constant([1] + [math.sqrt(2)] * (size - 1), weights.dtype)
    no_others = [[0, 0]] * 3 + [[0, num_products - size]]
    votes = tf.pad(weights / scale, no_others)
    ones = tf.broadcast_to(
        tf.one_hot(0, num_products, dtype=weights.dtype),
        (weights.shape[0], 1, *squares.shape[2:]),
    )
    return tf.concat((votes, squares, ones), axis=1)


class _Mapping:
    """A linear map from the features of each channel to the higher capsules.

    Every product is one of large matrices, with M or the batch in front.

    Args:
        weights: `(M, E, C, F)`.
    """

    def __init__(self, weights):
        self._higher, self._dim, *self._inputs = weights.shape
        self._num_inputs = math.prod(self._inputs)
        self._matrices = tf.reshape(
            weights, (self._higher, self._dim, self._num_inputs)
        )

    def sum_alike(self, features):
        """Features `(B, C, P, F)`, summed alike for every higher capsule."""
        sums = tf.reshape(tf.reduce_sum(features, 2), (-1, self._num_inputs))
        matrix = tf.reshape(self._matrices, (-1, self._num_inputs))
        sums = tf.matmul(sums, matrix, transpose_b=True)
        return tf.reshape(sums, (-1, self._higher, self._dim))

    def sum(self, moments):
        """Moments `(B, C, F, M)` to `(B, M, E)`."""
        moments = tf.reshape(moments, (-1, self._num_inputs, self._higher))
        moments = tf.transpose(moments, (2, 0, 1))
        sums = tf.matmul(moments, self._matrices, transpose_b=True)
        return tf.transpose(sums, (1, 0, 2))

    def queries(self, higher):
        """The transposed map: `(B, M, E)` to `(B, C, F, M)`."""
        queries = tf.matmul(tf.transpose(higher, (1, 0, 2)), self._matrices)
        queries = tf.transpose(queries, (1, 2, 0))
        return tf.reshape(queries, (-1, *self._inputs, self._higher))
