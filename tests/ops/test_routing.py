import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.ops import dynamic_routing, em_routing
from tests import reference


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


VOTES = random(2, 7, 4, 3)
ACTIVATIONS = np.random.default_rng(1).uniform(size=(2, 7))
BETA_V, BETA_A = np.random.default_rng(2).uniform(size=(2, 4))


@pytest.mark.parametrize("num_iterations", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("softmax_over", "axis"), [("lower", 0), ("higher", 1)]
)
@pytest.mark.parametrize("first", ["zero", "given"])
def test_dynamic_routing_equals_a_loop(
    num_iterations, softmax_over, axis, first
):
    logits = random(7, 4, seed=3) if first == "given" else np.zeros((7, 4))
    ours = dynamic_routing(
        VOTES,
        num_iterations=num_iterations,
        softmax_over=softmax_over,
        logits=logits if first == "given" else None,
    )
    expected = reference.dynamic_routing(VOTES, logits, num_iterations, axis)
    np.testing.assert_allclose(ours.capsules, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("softmax_over", "axis"), [("lower", 1), ("higher", 2)]
)
def test_coefficients_sum_to_one(softmax_over, axis):
    coefficients = dynamic_routing(
        VOTES, softmax_over=softmax_over
    ).coefficients
    assert coefficients.shape == (2, 7, 4)
    np.testing.assert_allclose(tf.reduce_sum(coefficients, axis), 1, atol=1e-12)


def test_one_iteration_is_the_squashed_average():
    ours = dynamic_routing(VOTES, num_iterations=1)
    np.testing.assert_allclose(ours.coefficients, 1 / 7, atol=1e-12)
    np.testing.assert_allclose(
        ours.capsules, reference.squash(VOTES.mean(1)), atol=1e-12
    )


def test_logits_of_one_lower_capsule_pick_its_vote():
    logits = np.full((7, 4), -1e3)
    logits[2] = 0
    ours = dynamic_routing(VOTES, num_iterations=1, logits=logits)
    np.testing.assert_allclose(
        ours.capsules, reference.squash(VOTES[:, 2]), atol=1e-12
    )


@pytest.mark.parametrize("num_iterations", [1, 2, 3, 4])
def test_em_routing_equals_a_loop(num_iterations):
    arguments = (VOTES, ACTIVATIONS, BETA_V, BETA_A)
    ours = em_routing(*arguments, num_iterations=num_iterations)
    means, activations = reference.em_routing(*arguments, num_iterations)
    np.testing.assert_allclose(ours.capsules, means, atol=1e-9)
    np.testing.assert_allclose(ours.activations, activations, atol=1e-9)


def test_no_em_cluster_is_narrower_than_a_thousandth_of_all_votes():
    """After four rounds a capsule here owns one vote."""
    rng = np.random.default_rng(9)
    votes, activations = rng.normal(size=(1, 12, 4, 6)), rng.uniform(size=12)
    arguments = (votes, activations[None], *rng.uniform(size=(2, 4)))
    ours = em_routing(*arguments, num_iterations=4)
    means, expected = reference.em_routing(*arguments, 4, smallest_share=1e-6)
    np.testing.assert_allclose(ours.capsules, means, atol=1e-9)
    np.testing.assert_allclose(ours.activations, expected, atol=1e-9)
    _, unbounded = reference.em_routing(*arguments, 4)
    assert np.abs(unbounded - expected).max() > 0.5


def test_one_em_iteration_is_the_weighted_average():
    ours = em_routing(VOTES, ACTIVATIONS, BETA_V, BETA_A, num_iterations=1)
    share = ACTIVATIONS / ACTIVATIONS.sum(1, keepdims=True)
    np.testing.assert_allclose(
        ours.capsules, np.einsum("bn,bnme->bme", share, VOTES), atol=1e-12
    )


def test_a_single_higher_capsule_has_the_lowest_cost():
    ours = em_routing(VOTES[:, :, :1], ACTIVATIONS, [0.3], [0.7])
    # Three iterations: sharpness 3, cost −5.
    expected = 1 / (1 + np.exp(-3 * (0.7 + 5)))
    np.testing.assert_allclose(ours.activations, expected, rtol=1e-12)


def test_float32_em_survives_what_underflows_as_a_product():
    """64 entries far from every mean: a density of about exp(−10⁵)."""
    votes = 30 * random(1, 9, 5, 64).astype("float32")
    beta = np.full(5, 0.5, "float32")
    ours = em_routing(votes, np.ones((1, 9), "float32"), beta, beta)
    # Means are averages of votes.
    capsules = ours.capsules.numpy()
    assert (capsules >= votes.min(1)).all()
    assert (capsules <= votes.max(1)).all()
    assert np.isfinite(ours.activations).all()


DEGENERATE = {
    "ordinary": (VOTES, ACTIVATIONS),
    "one lower": (VOTES[:, :1], ACTIVATIONS[:, :1]),
    "one higher": (VOTES[:, :, :1], ACTIVATIONS),
    "one of each": (VOTES[:, :1, :1], ACTIVATIONS[:, :1]),
    "identical votes": (np.ones((2, 7, 4, 3)), ACTIVATIONS),
    "zero votes": (np.zeros((2, 7, 4, 3)), ACTIVATIONS),
    "zero activations": (VOTES, np.zeros((2, 7))),
    "some zero activations": (VOTES, ACTIVATIONS * (ACTIVATIONS > 0.5)),
    "huge votes": (1e4 * VOTES, ACTIVATIONS),
    "tiny votes": (1e-8 * VOTES, ACTIVATIONS),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("case", DEGENERATE)
def test_routings_and_their_gradients_are_finite(case, dtype):
    votes, activations = (tf.constant(t, dtype) for t in DEGENERATE[case])
    beta_v, beta_a = (
        tf.constant(beta[: votes.shape[2]], dtype) for beta in (BETA_V, BETA_A)
    )
    variables = (votes, activations, beta_v, beta_a)
    for num_iterations in (1, 2, 3, 5):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(variables)
            em = em_routing(*variables, num_iterations=num_iterations)
            dynamic = dynamic_routing(votes, num_iterations=num_iterations)
            total = tf.reduce_sum(em.capsules**2) + tf.reduce_sum(
                em.activations
            )
            agreed = tf.reduce_sum(dynamic.capsules**2)
        results = [*em, *dynamic, *tape.gradient(total, variables)]
        for tensor in [*results, tape.gradient(agreed, votes)]:
            assert np.isfinite(tf.cast(tensor, tf.float64)).all()


def test_narrow_votes_are_routed_in_float32():
    votes = tf.constant(VOTES, tf.bfloat16)
    assert dynamic_routing(votes).capsules.dtype == tf.float32
    assert em_routing(votes, ACTIVATIONS, BETA_V, BETA_A)[0].dtype == tf.float32


bad_arguments = pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_iterations": 0}, "`num_iterations` must be.*Received"),
        ({"softmax_over": "both"}, "`softmax_over` must be.*Received"),
    ],
)


@bad_arguments
def test_refuses_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        dynamic_routing(VOTES, **arguments)


def test_em_refuses_no_iterations():
    with pytest.raises(ValueError, match="`num_iterations` must be.*Received"):
        em_routing(VOTES, ACTIVATIONS, BETA_V, BETA_A, num_iterations=0)
