"""What holds for every problem, against POT, SciPy and finite differences."""

import functools

import numpy as np
import ot
import pytest
import scipy.optimize
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from encapnet_tf.ops import (
    sinkhorn,
    sinkhorn_divergence,
)
from encapnet_tf.ops.ground_cost import cost_matrix

SEEDS = st.integers(0, 2**32 - 1)
EPSILONS = st.sampled_from([0.1, 0.5, 2.0])
COSTS = st.sampled_from(["cosine", "l2", "sqeuclidean"])
DOMAINS = st.sampled_from(["log", "scaling"])
few = settings(max_examples=12, deadline=None, derandomize=True)


@functools.cache
def solver(**options):
    """One traced solver per set of options, for batches of any size."""
    costs = tf.TensorSpec((None, None), tf.float64)
    return tf.function(
        lambda costs: sinkhorn(costs, **options), input_signature=[costs]
    )


@functools.cache
def divergence(**options):
    points = tf.TensorSpec((None, None), tf.float64)
    return tf.function(
        lambda x, y: sinkhorn_divergence(x, y, **options),
        input_signature=[points, points],
    )


def draw(seed, rows=6, columns=6, size=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, size)), rng.normal(size=(columns, size))


def draw_costs(seed, cost="l2", rows=6, columns=6):
    return cost_matrix(*draw(seed, rows, columns), cost).numpy()


def uniform(size):
    return np.full(size, 1 / size)


@few
@given(SEEDS, COSTS, EPSILONS, DOMAINS, st.integers(1, 7), st.integers(1, 7))
def test_plan_equals_that_of_pot(seed, cost, epsilon, domain, rows, columns):
    costs = draw_costs(seed, cost, rows, columns)
    costs *= min(1, 300 * epsilon / costs.max())  # within POT's own kernel
    result = solver(epsilon=epsilon, num_iterations=10, domain=domain)(costs)
    expected = ot.sinkhorn(
        uniform(rows),
        uniform(columns),
        costs,
        epsilon,
        method="sinkhorn",
        numItermax=10,
        stopThr=0,
        warn=False,
    )
    np.testing.assert_allclose(result.plan, expected, 1e-8, 1e-12)
    np.testing.assert_allclose(
        result.transport_cost, np.sum(expected * costs), 1e-9
    )


@few
@given(SEEDS, COSTS, DOMAINS, st.sampled_from([1, 4, 12]))
def test_rows_are_exact_and_the_error_is_that_of_the_columns(
    seed, cost, domain, num_iterations
):
    costs = draw_costs(seed, cost, 5, 7)
    solve = solver(epsilon=0.5, num_iterations=num_iterations, domain=domain)
    plan, _, error = solve(costs)
    plan = plan.numpy()
    assert plan.min() >= 0
    np.testing.assert_allclose(plan.sum(1), uniform(5), 1e-12)
    column_error = np.abs(plan.sum(0) - uniform(7)).sum()
    np.testing.assert_allclose(error, column_error, atol=1e-12)


@few
@given(SEEDS, COSTS)
def test_swapping_the_batches_changes_nothing_at_convergence(seed, cost):
    costs = draw_costs(seed, cost, 5, 7)
    solve = solver(epsilon=1.0, num_iterations=1000)
    one, other = solve(costs), solve(costs.T)
    np.testing.assert_allclose(one.marginal_error, 0, atol=1e-6)
    np.testing.assert_allclose(one.transport_cost, other.transport_cost, 1e-5)


@few
@given(SEEDS, COSTS, DOMAINS, st.sampled_from([1, 2, 5]))
def test_order_within_a_batch_does_not_matter(seed, cost, domain, iterations):
    costs = draw_costs(seed, cost, 5, 7)
    rng = np.random.default_rng(seed)
    shuffled = costs[rng.permutation(5)][:, rng.permutation(7)]
    solve = solver(epsilon=0.5, num_iterations=iterations, domain=domain)
    np.testing.assert_allclose(
        solve(costs).transport_cost, solve(shuffled).transport_cost, 1e-9
    )


@few
@given(SEEDS, st.sampled_from([1e-3, 0.5, 10.0, 1e4]), DOMAINS)
def test_scaling_costs_and_epsilon_together_scales_the_result(
    seed, scale, domain
):
    costs = draw_costs(seed)
    plain = solver(epsilon=0.5, num_iterations=10, domain=domain)(costs)
    scaled = solver(epsilon=0.5 * scale, num_iterations=10, domain=domain)(
        scale * costs
    )
    np.testing.assert_allclose(
        scaled.transport_cost, scale * plain.transport_cost, 1e-9
    )


@few
@given(SEEDS)
def test_small_epsilon_gives_the_exact_assignment(seed):
    costs = draw_costs(seed)
    rows, columns = scipy.optimize.linear_sum_assignment(costs)
    exact = costs[rows, columns].mean()
    np.testing.assert_allclose(ot.emd2([], [], costs), exact)
    found = solver(epsilon=2e-3, num_iterations=5000)(costs).transport_cost
    # The entropy of a plan of n points is worth at most epsilon log n.
    np.testing.assert_allclose(found, exact, atol=2e-3 * np.log(6))


@few
@given(SEEDS)
def test_large_epsilon_gives_the_energy_distance(seed):
    x, y = draw(seed, 5, 7)
    means = [
        np.mean(cost_matrix(*pair, "l2")) for pair in [(x, y), (x, x), (y, y)]
    ]
    energy = 2 * means[0] - means[1] - means[2]
    measure = divergence(cost="l2", epsilon=1e6, num_iterations=10)
    np.testing.assert_allclose(measure(x, y), energy, atol=1e-5)


@few
@given(SEEDS)
def test_translation_costs_twice_its_squared_length(seed):
    x, (shift, *_) = np.multiply(0.5, draw(seed))
    measure = divergence(cost="sqeuclidean", epsilon=2.0, num_iterations=500)
    expected = 2 * np.sum(shift**2)
    np.testing.assert_allclose(measure(x, x + shift), expected, 1e-4)


@few
@given(SEEDS, COSTS, EPSILONS)
def test_log_and_scaling_agree_in_float32(seed, cost, epsilon):
    x, y = (v.astype("float32") for v in draw(seed))
    costs = cost_matrix(x, y, cost)
    costs *= tf.minimum(1.0, 60 * epsilon / tf.reduce_max(costs))
    options = {"epsilon": epsilon, "num_iterations": 3}
    log = sinkhorn(costs, domain="log", **options)
    scaling = sinkhorn(costs, domain="scaling", **options)
    np.testing.assert_allclose(log.plan, scaling.plan, atol=1e-5)
    np.testing.assert_allclose(log.transport_cost, scaling.transport_cost, 1e-5)


@few
@given(SEEDS, st.sampled_from([1.0, 30.0, 1e3, 1e5]))
def test_log_domain_follows_pot_however_large_the_costs(seed, scale):
    costs = scale * draw_costs(seed)
    plan, _, error = solver(epsilon=0.1, num_iterations=10, domain="log")(costs)
    expected = ot.bregman.sinkhorn_log(
        uniform(6), uniform(6), costs, 0.1, numItermax=10, stopThr=0, warn=False
    )
    np.testing.assert_allclose(plan, expected, 1e-6, 1e-9)
    assert np.isfinite(error)


def entropic_cost(x, y, cost, epsilon):
    """<P, Q> + epsilon KL(P | uniform), what the iteration minimises."""
    costs = cost_matrix(x, y, cost)
    plan, value, _ = solver(epsilon=epsilon, num_iterations=2000)(costs)
    relative = plan.numpy() * plan.shape[0] * plan.shape[1]
    return value + epsilon * np.sum(plan * np.log(relative))


def derivative(function, x, direction, step=1e-5):
    ahead, behind = (function(x + s * direction) for s in (step, -step))
    return (ahead - behind) / (2 * step)


def gradient(x, y, **options):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = sinkhorn_divergence(x, y, debias=False, **options)
    return tape.gradient(value, x).numpy()


@pytest.mark.parametrize("cost", ["cosine", "l2", "sqeuclidean"])
def test_constant_plan_gradient_is_that_of_the_entropic_cost(cost):
    x, y = draw(0)
    direction, _ = draw(1)
    actual = gradient(x, y, cost=cost, epsilon=0.5, num_iterations=500)
    expected = derivative(
        lambda x: entropic_cost(x, y, cost, 0.5), x, direction
    )
    np.testing.assert_allclose(np.sum(actual * direction), expected, 1e-5)


@pytest.mark.parametrize("domain", ["log", "scaling"])
@pytest.mark.parametrize("cost", ["cosine", "l2", "sqeuclidean"])
def test_unrolled_gradient_is_that_of_the_transport_cost(cost, domain):
    x, y = draw(0, 5, 7)
    direction, _ = draw(1, 5, 7)
    options = {"cost": cost, "epsilon": 0.5, "num_iterations": 4}
    options["domain"] = domain
    actual = gradient(x, y, plan_gradient=True, **options)
    expected = derivative(
        lambda x: sinkhorn_divergence(x, y, debias=False, **options),
        x,
        direction,
    )
    np.testing.assert_allclose(np.sum(actual * direction), expected, 1e-6)
