"""The solver against golden numbers, edge cases, dtypes and its errors."""

import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.ops import (
    sinkhorn,
    sinkhorn_divergence,
    sinkhorn_divergence_with_error,
)
from encapnet_tf.ops.ground_cost import cost_matrix
from tests import forked

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "sinkhorn.npz"
FIXED = ["c01", "c06", "c10", "c12", "c13", "c16", "c20", "c21", "c23"]
CONVERGED = ["c02", "c03", "c09"]
WITH_GRADIENTS = ["c01", "c06", "c23"]
TOLERANCE = {"float32": 1e-5, "float64": 1e-9}
COSTS = ["cosine", "l2", "sqeuclidean"]


def golden(case):
    with np.load(GOLDEN) as archive:
        prefix = f"{case}__"
        keys = [key for key in archive.files if key.startswith(prefix)]
        return {key.removeprefix(prefix): archive[key] for key in keys}


def inputs(case, dtype):
    """Points, cost and the solver's options of a golden case."""
    options = {"epsilon": float(case["eps"])}
    if case["L"] != "converged":
        options["num_iterations"] = int(case["L"])
    x, y = (tf.constant(case[name].astype(dtype)) for name in "xy")
    return x, y, str(case["kind"]), options


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def value_and_gradients(x, y, **options):
    x, y = tf.convert_to_tensor(x), tf.convert_to_tensor(y)
    with tf.GradientTape() as tape:
        tape.watch((x, y))
        value = sinkhorn_divergence(x, y, **options)
    return value, tape.gradient(value, (x, y))


@pytest.mark.parametrize("domain", ["auto", "log"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FIXED)
def test_fixed_iterations_give_the_golden_numbers(name, dtype, domain):
    case = golden(name)
    x, y, cost, options = inputs(case, dtype)
    tolerance = TOLERANCE[dtype]
    costs = cost_matrix(x, y, cost)
    result = sinkhorn(costs, domain=domain, **options)
    np.testing.assert_allclose(costs, case["Q"], tolerance, tolerance)
    np.testing.assert_allclose(result.transport_cost, case["W_xy"], tolerance)
    np.testing.assert_allclose(result.plan, case["P"], 0, tolerance)
    error_tolerance = 10 * tolerance
    np.testing.assert_allclose(
        result.marginal_error, case["col_err"], 0, error_tolerance
    )
    value = sinkhorn_divergence(x, y, cost=cost, domain=domain, **options)
    absolute = 0 if case["div"] else tolerance
    np.testing.assert_allclose(value, case["div"], tolerance, absolute)
    biased = sinkhorn_divergence(x, y, cost=cost, debias=False, **options)
    np.testing.assert_allclose(biased, case["W_xy"], tolerance)


@pytest.mark.parametrize("domain", ["log", "scaling"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("gradient", ["stop", "unrolled"])
@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_gradients_are_the_golden_ones(name, gradient, dtype, domain):
    case = golden(name)
    x, y, cost, options = inputs(case, dtype)
    _, gradients = value_and_gradients(
        x,
        y,
        cost=cost,
        plan_gradient=gradient == "unrolled",
        domain=domain,
        **options,
    )
    for actual, points in zip(gradients, "xy", strict=True):
        expected = case[f"grad_{points}_{gradient}"]
        tolerance = TOLERANCE[dtype] * np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, 0, tolerance)


@pytest.mark.parametrize("domain", ["log", "scaling"])
@pytest.mark.parametrize("name", CONVERGED)
def test_many_iterations_reach_the_converged_golden_numbers(name, domain):
    case = golden(name)
    x, y, cost, options = inputs(case, "float32")
    divergence = tf.function(sinkhorn_divergence)
    value = divergence(
        x, y, cost=cost, num_iterations=3000, domain=domain, **options
    )
    np.testing.assert_allclose(value, case["div"], 1e-4)


def test_falling_epsilon_approaches_the_golden_exact_transport():
    case = golden("c17")
    costs = cost_matrix(case["x"], case["y"], "cosine")
    solve = tf.function(sinkhorn)
    gaps = [
        solve(costs, epsilon=epsilon, num_iterations=4000).transport_cost
        - case["W_xy"]
        for epsilon in (0.1, 0.03, 0.01, 0.003)
    ]
    assert np.all(np.diff(gaps) < 0)
    assert abs(gaps[-1]) < 1e-4


@pytest.mark.parametrize("cost", COSTS)
def test_divergence_of_a_batch_with_itself_is_zero(cost):
    x = draw(32, 8)
    shuffled = np.random.default_rng(1).permutation(x)
    for other, tolerance in [(x, 0), (shuffled, 2e-6)]:
        value = sinkhorn_divergence(x, other, cost=cost)
        np.testing.assert_allclose(value, 0, atol=tolerance)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("debias", [True, False])
def test_batch_of_one_costs_its_distance(cost, debias):
    x, y = draw(1, 4), draw(1, 4, seed=1)
    value, gradients = value_and_gradients(x, y, cost=cost, debias=debias)
    expected = (1 + debias) * cost_matrix(x, y, cost)[0, 0]
    np.testing.assert_allclose(value, expected, 1e-6)
    assert np.all(np.isfinite(gradients))


@pytest.mark.parametrize("plan_gradient", [False, True])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1.0, 1e5])
def test_coincident_points_have_finite_gradients(cost, plan_gradient, scale):
    x = np.full((4, 3), scale, "float32")
    value, gradients = value_and_gradients(
        x, x, cost=cost, plan_gradient=plan_gradient
    )
    np.testing.assert_allclose(value, 0, atol=1e-6)
    for gradient in gradients:
        np.testing.assert_allclose(gradient, 0, atol=1e-6 / max(scale, 1e-20))


def test_coincident_points_of_l2_are_exactly_zero_apart():
    x = 100 + draw(64, 16)
    np.testing.assert_array_equal(np.diag(cost_matrix(x, x, "l2")), 0)


@pytest.mark.parametrize("offset", [0, 1e3])
@pytest.mark.parametrize("gap", [1e-3, 1.0])
def test_l2_of_close_and_far_points_keeps_float32_accuracy(offset, gap):
    x = (offset + draw(16, 64)).astype("float32")
    y = (x + gap * draw(16, 64, seed=1)).astype("float32")
    expected = np.linalg.norm(x[:, None].astype("float64") - y[None], axis=-1)
    np.testing.assert_allclose(cost_matrix(x, y, "l2"), expected, 1e-6)


@pytest.mark.parametrize("cost", COSTS)
def test_zero_rows_have_finite_values_and_gradients(cost):
    x, y = draw(6, 4), draw(6, 4, seed=1)
    x[:2] = y[:3] = 0
    value, gradients = value_and_gradients(x, y, cost=cost, plan_gradient=True)
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradients))


def test_zero_vector_has_cosine_distance_one_and_no_gradient():
    x, y = np.zeros((1, 4), "float32"), draw(3, 4)
    np.testing.assert_array_equal(cost_matrix(x, y, "cosine"), np.ones((1, 3)))
    _, (gradient, _) = value_and_gradients(x, y[:1])
    np.testing.assert_array_equal(gradient, np.zeros((1, 4)))


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_cosine_does_not_depend_on_the_length_of_vectors(scale):
    x, y = draw(5, 4), draw(6, 4, seed=1)
    scaled = cost_matrix(np.float32(scale) * x, y, "cosine")
    np.testing.assert_allclose(scaled, cost_matrix(x, y, "cosine"), atol=1e-6)


@pytest.mark.parametrize("plan_gradient", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [1e2, 1e4])
def test_points_beyond_the_kernel_range_stay_finite(far, dtype, plan_gradient):
    x, y = draw(8, 4).astype(dtype), draw(8, 4, seed=1).astype(dtype)
    y[:5] += far
    options = {"cost": "l2", "plan_gradient": plan_gradient}
    outside = sinkhorn_divergence(x, y, **options)
    value, gradients = value_and_gradients(x, y, **options)
    assert np.exp(-cost_matrix(x, y, "l2") / 0.1).min() == 0
    np.testing.assert_array_equal(value, outside)
    assert np.isfinite(value)
    assert value > 0
    assert np.all(np.isfinite(gradients))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_features_are_solved_in_float32(dtype):
    x, y = (tf.cast(draw(32, 8, seed=s), dtype) for s in (0, 1))
    value, gradients = value_and_gradients(x, y)
    expected = sinkhorn_divergence(tf.cast(x, "float32"), tf.cast(y, "float32"))
    assert value.dtype == tf.float32
    assert gradients[0].dtype == x.dtype
    np.testing.assert_allclose(value, expected, 1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("plan_gradient", [False, True])
@pytest.mark.parametrize(
    ("cost", "num_iterations"), [("cosine", 3), ("l2", 3), ("l2", 40)]
)
def test_eager_graph_and_xla_agree(cost, num_iterations, plan_gradient):
    x, y = draw(8, 16), 5 + draw(8, 16, seed=1)

    def call(x, y):
        return value_and_gradients(
            x,
            y,
            cost=cost,
            num_iterations=num_iterations,
            plan_gradient=plan_gradient,
        )

    unknown = [tf.TensorSpec((None, 16)), tf.TensorSpec((None, 16))]
    graph = tf.function(call, input_signature=unknown)(x, y)
    compiled = tf.function(call, jit_compile=True)(x, y)
    expected = call(x, y)
    for actual in (graph, compiled):
        tf.nest.map_structure(
            lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 2e-5),
            actual,
            expected,
        )


@pytest.mark.parametrize("domain", ["auto", "log", "scaling"])
def test_leading_axes_hold_separate_problems(domain):
    x, y = draw(2, 3, 5, 4), draw(2, 3, 7, 4, seed=1)
    options = {"epsilon": 0.2, "num_iterations": 5, "domain": domain}
    together = sinkhorn(cost_matrix(x, y, "l2"), **options)
    divergences = sinkhorn_divergence(x, y, cost="l2", **options)
    assert divergences.shape == (2, 3)
    for index in np.ndindex(2, 3):
        alone = sinkhorn(cost_matrix(x[index], y[index], "l2"), **options)
        for actual, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(actual[index], expected, 1e-5, 1e-6)
        np.testing.assert_allclose(
            divergences[index],
            sinkhorn_divergence(x[index], y[index], cost="l2", **options),
            1e-5,
        )


def test_with_error_gives_the_marginal_error_of_the_cross_term():
    x, y = draw(8, 4), draw(6, 4, seed=1)
    result = sinkhorn_divergence_with_error(x, y, num_iterations=2)
    cross = sinkhorn(cost_matrix(x, y), epsilon=0.1, num_iterations=2)
    assert result.marginal_error > 0
    np.testing.assert_allclose(result.marginal_error, cross.marginal_error)
    np.testing.assert_allclose(
        result.value, sinkhorn_divergence(x, y, num_iterations=2)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": "l1"}, "`cost` must be one of .*Received: cost='l1'"),
        ({"epsilon": 0.0}, "`epsilon` must be > 0 .*Received: epsilon=0.0"),
        ({"epsilon": float("nan")}, "Received: epsilon=nan"),
        ({"num_iterations": 0}, ">= 1. Received: num_iterations=0. Try 10"),
        ({"num_iterations": 1.5}, "Received: num_iterations=1.5"),
        ({"domain": "exp"}, "`domain` must be one of .*domain='exp'"),
        ({"x": np.ones(4)}, r"`x` must have at least 2 .*x.shape=\(4,\)"),
        ({"y": np.ones(4)}, r"`y` must have at least 2 .*y.shape=\(4,\)"),
        ({"y": np.ones((3, 5))}, r"same length. Received: .*y.shape=\(3, 5\)"),
    ],
)
def test_wrong_arguments_say_what_was_received(options, message):
    arguments = {"x": np.ones((3, 4)), "y": np.ones((3, 4))} | options
    with pytest.raises(ValueError, match=message):
        sinkhorn_divergence(**arguments)


def test_solver_and_cost_matrix_check_their_own_arguments():
    with pytest.raises(ValueError, match=r"cost_matrix.shape=\(3,\)"):
        sinkhorn(np.ones(3), epsilon=0.1, num_iterations=10)
    with pytest.raises(ValueError, match="Received: epsilon=-1"):
        sinkhorn(np.ones((3, 3)), epsilon=-1, num_iterations=10)
    with pytest.raises(ValueError, match="Received: cost='dot'"):
        cost_matrix(np.ones((3, 3)), np.ones((3, 3)), "dot")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_constant_plan_at_batch_1024_stays_under_64_mebibytes():
    done = forked.run("tests.ops.solver_memory")
    assert done.returncode == 0, done.stderr
    assert 4 < float(done.stdout) < 64
