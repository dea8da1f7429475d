"""Agreement routing without the votes.

A vote is W_c u_i, with W shared over space. So a weighted sum of votes is W_c
times a weighted sum of lower capsules, and the agreement of a vote with a
higher capsule v is u_i · W_cᵀ v: the votes (B, N, M, E) are never made. What
comes out is what `ops.routing`, the plain form, makes of them.

Letters as in `ops.routed_moments`: C, P, F; D entries of a lower capsule, E of
a higher one.
"""

import tensorflow as tf

from encapnet_tf.checks import check_choice, check_positive
from encapnet_tf.choices import SOFTMAX_OVER
from encapnet_tf.ops.factored_votes import (
    VoteGaussians,
    VoteSums,
    origin_of,
    products,
)
from encapnet_tf.ops.routed_moments import routed_moments
from encapnet_tf.ops.routing import EMRouting, em_rounds
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
    check_choice("softmax_over", softmax_over, SOFTMAX_OVER)
    features = _with_one(lower)
    mapping = VoteSums(_weights(kernel, bias, features.dtype))
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

    A Gaussian needs of the votes v̂ only weighted sums of (1, v̂, v̂²), and its
    log density is linear in these three. They in turn are linear in 1, δ and
    the products of two entries of δ = u − ū_c, the features here. In float32 a
    variance is good to some 1e-7 of the mean square distance of its votes from
    the centre of all: of a cluster that owns one far vote little is left.

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
    lower = at_least_float32(lower)
    activations = tf.cast(activations, lower.dtype)
    gains = tf.reshape(activations, (-1, *lower.shape[1:3], 1))
    centres = origin_of(lower, gains, axis=2)
    lower -= centres
    features = tf.concat((_with_one(lower), products(lower)), axis=-1)
    moments = _same_moments(features * gains) / bias.shape[1]
    statistics = VoteGaussians(kernel, bias, centres, moments[:, :, :1])

    def assign(*gaussians):
        return routed_moments(
            features,
            statistics.log_densities(*gaussians),
            softmax_over="higher",
            gains=gains[..., 0],
        )

    routed = em_rounds(
        statistics.fit, assign, moments, beta_v, beta_a, num_iterations
    )
    return EMRouting(statistics.origin + routed.capsules, routed.activations)


def _with_one(lower):
    """The features (1, u): `(B, C, P, D + 1)`."""
    lower = at_least_float32(lower)
    return tf.pad(lower, [[0, 0]] * 3 + [[1, 0]], constant_values=1)


def _weights(kernel, bias, dtype):
    """The votes' weights on the features (1, u): `(M, E, C, D + 1)`."""
    weights = tf.concat((bias[None], kernel), axis=0)
    return tf.transpose(tf.cast(weights, dtype), (2, 3, 1, 0))


def _same_moments(features):
    """Σ_p f, the same for every higher capsule: `(B, C, F, 1)`."""
    return tf.reduce_sum(features, axis=2)[..., None]
