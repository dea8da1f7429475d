"""Agreement routing of CapNet, the baseline: dynamic and EM.

Lower capsules i = 1 … N vote for higher capsules j = 1 … M with vectors of E
entries. Both routings compute in float32 (float64 for float64 votes).
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from encapnet_tf.checks import check_choice, check_positive
from encapnet_tf.choices import SOFTMAX_OVER
from encapnet_tf.ops.squash import at_least_float32, squash

# No cluster is narrower than a thousandth of the spread of all votes. A capsule
# that owns a single vote has no width, and its cost, log σ, no bound: it would
# outdo every other in the normalisation of the costs. The second bound keeps
# log σ finite when all votes agree.
_SMALLEST_SHARE_OF_VARIANCE = 1e-6
_SMALLEST_VARIANCE = 1e-12
# The normalised cost runs from −5 to 5, so that the sigmoid spreads over
# (0, 1) (paper, appendix A).
_COST_RANGE = 5.0


class DynamicRouting(NamedTuple):
    """Higher capsules `(B, M, E)` and the last coefficients c `(B, N, M)`."""

    capsules: tf.Tensor
    coefficients: tf.Tensor


class EMRouting(NamedTuple):
    """Higher capsules μ `(B, M, E)` and their activations a `(B, M)`."""

    capsules: tf.Tensor
    activations: tf.Tensor


def dynamic_routing(
    votes: tf.Tensor,
    *,
    num_iterations: int = 3,
    softmax_over: str = "lower",
    logits: tf.Tensor | None = None,
) -> DynamicRouting:
    """Routes by repeated agreement (paper, equation 1).

    Args:
        votes: v̂ `(B, N, M, E)`.
        num_iterations: R ≥ 1; 1 is a plain average.
        softmax_over: "lower" (the paper: over "higher" does not converge) or
            "higher".
        logits: The first b `(N, M)`; zero where not given.

    Returns:
        A `DynamicRouting`.

    Example:
        >>> dynamic_routing(tf.ones((2, 6, 3, 4))).capsules.shape
        TensorShape([2, 3, 4])
    """
    check_positive(num_iterations=num_iterations)
    check_choice("softmax_over", softmax_over, SOFTMAX_OVER)
    votes = at_least_float32(votes)
    shape = tf.shape(votes)
    if logits is None:
        logits = tf.zeros(shape[1:3], votes.dtype)
    axis = 1 if softmax_over == "lower" else 2
    logits = tf.broadcast_to(tf.cast(logits, votes.dtype), shape[:3])
    for iteration in range(num_iterations):
        coefficients = tf.nn.softmax(logits, axis=axis)
        capsules = squash(tf.einsum("bnm,bnme->bme", coefficients, votes))
        if iteration < num_iterations - 1:
            logits += tf.einsum("bnme,bme->bnm", votes, capsules)
    return DynamicRouting(capsules, coefficients)


def em_routing(
    votes: tf.Tensor,
    activations: tf.Tensor,
    beta_v: tf.Tensor,
    beta_a: tf.Tensor,
    *,
    num_iterations: int = 3,
) -> EMRouting:
    """Routes by fitting one Gaussian per higher capsule (equations 2 and 3).

    Densities stay logarithms: products of densities underflow to NaN.

    Args:
        votes: v̂ `(B, N, M, E)`.
        activations: a of the lower capsules `(B, N)`, not negative.
        beta_v: Cost of describing a capsule, `(M,)`.
        beta_a: Threshold of activating a capsule, `(M,)`.
        num_iterations: R ≥ 1.

    Returns:
        An `EMRouting`.
    """
    votes = at_least_float32(votes)
    activations = tf.cast(activations, votes.dtype)
    num_higher = tf.cast(tf.shape(votes)[2], votes.dtype)
    assignments = tf.fill(tf.shape(votes)[:3], 1 / num_higher)

    def fit(assignments):
        return _m_step(votes, assignments * activations[:, :, None])

    def assign(*gaussians):
        return _e_step(votes, *gaussians)

    return em_rounds(fit, assign, assignments, beta_v, beta_a, num_iterations)


def em_rounds(
    fit: Callable,
    assign: Callable,
    assignments: tf.Tensor,
    beta_v: tf.Tensor,
    beta_a: tf.Tensor,
    num_iterations: int,
) -> EMRouting:
    """Fits Gaussians and assigns the votes to them in turn.

    Args:
        fit: From assignments, in whatever form, to means, variances and masses.
        assign: From means, variances and the logarithms of the activations to
            the next assignments.
        assignments: The first ones.
        beta_v: See `em_routing`.
        beta_a: See `em_routing`.
        num_iterations: See `em_routing`.
    """
    check_positive(num_iterations=num_iterations)
    beta_v = tf.cast(beta_v, assignments.dtype)
    beta_a = tf.cast(beta_a, assignments.dtype)
    for iteration in range(num_iterations):
        means, variances, masses = fit(assignments)
        if iteration == 0:
            share = _SMALLEST_SHARE_OF_VARIANCE * variances
            narrowest = tf.maximum(share, _SMALLEST_VARIANCE)
        variances = tf.maximum(variances, narrowest)
        scores = _activation_scores(
            variances, masses, beta_v, beta_a, iteration
        )
        if iteration < num_iterations - 1:
            assignments = assign(means, variances, tf.math.log_sigmoid(scores))
    return EMRouting(means, tf.sigmoid(scores))


def _activation_scores(variances, masses, beta_v, beta_a, iteration):
    """The logits of the activations of a round, `(B, M)`."""
    log_deviations = 0.5 * tf.math.log(variances)
    costs = tf.reduce_sum(log_deviations + beta_v[:, None], -1) * masses
    sharpness = 1.0 + iteration
    return sharpness * (beta_a - _normalise(costs))


def _m_step(votes, assignments):
    masses = tf.reduce_sum(assignments, axis=1)
    weights = tf.math.divide_no_nan(assignments, masses[:, None])
    means = tf.einsum("bnm,bnme->bme", weights, votes)
    variances = tf.einsum(
        "bnm,bnme->bme", weights, tf.square(votes - means[:, None])
    )
    return means, variances, masses


def _normalise(costs):
    """Maps the costs of one sample to [−5, 5]; equal ones all to −5."""
    lowest = tf.reduce_min(costs, axis=-1, keepdims=True)
    spread = tf.reduce_max(costs, axis=-1, keepdims=True) - lowest
    share = tf.math.divide_no_nan(costs - lowest, spread)
    return _COST_RANGE * (2 * share - 1)


def _e_step(votes, means, variances, log_activations):
    """Assignments from log a_j + log N(v̂; μ, σ), up to a constant in j."""
    distances = tf.square(votes - means[:, None]) / variances[:, None]
    log_density = -0.5 * tf.reduce_sum(
        distances + tf.math.log(variances)[:, None], axis=-1
    )
    return tf.nn.softmax(log_activations[:, None] + log_density, axis=-1)
