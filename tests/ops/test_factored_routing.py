import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import create_model, losses, ops
from encapnet_tf.ops import (
    dynamic_routing,
    em_routing,
    factored_dynamic_routing,
    factored_em_routing,
    forms,
)
from tests.conformance import VARIANT_OVERRIDES
from tests.ops.test_routing import bad_arguments

B, C, P, D, M, E = 2, 3, 4, 2, 5, 4


def random(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(size=shape))


def uniform(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).uniform(size=shape))


LOWER, KERNEL, BIAS = random(B, C, P, D), random(D, C, M, E), random(C, M, E)
LOGITS = random(C * P, M)
EM_INPUTS = (uniform(B, C * P), uniform(M, seed=1), uniform(M, seed=2))


@pytest.fixture(params=["at once", "one by one"])
def images(request, monkeypatch):
    """Both ways through a batch."""
    if request.param == "one by one":
        monkeypatch.setattr(forms, "_LARGEST_AT_ONCE", 0)


def votes_of(lower, kernel, bias):
    votes = tf.einsum("bcpd,dcme->bcpme", lower, kernel) + bias[:, None]
    _, channels, places, higher, dim = votes.shape
    return tf.reshape(votes, (-1, channels * places, higher, dim))


def plain_dynamic(lower, kernel, bias, *logits, **arguments):
    if logits:
        arguments["logits"] = logits[0]
    votes = votes_of(lower, kernel, bias)
    return dynamic_routing(votes, **arguments).capsules


def dynamic(lower, kernel, bias, *logits, **arguments):
    logits = logits[0] if logits else None
    return factored_dynamic_routing(
        lower, kernel, bias, logits=logits, **arguments
    )


def plain_em(lower, kernel, bias, *others, **arguments):
    return em_routing(votes_of(lower, kernel, bias), *others, **arguments)


def em(lower, kernel, bias, activations, *betas, **arguments):
    return factored_em_routing(
        lower, activations, kernel, bias, *betas, **arguments
    )


def with_gradients(function, inputs, **arguments):
    """Outputs, and gradients of the sum of them times sin(0, 1, 2, …)."""
    total = 0.0
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = tf.nest.flatten(function(*inputs, **arguments))
        for output in outputs:
            waves = tf.sin(tf.cast(tf.range(tf.size(output)), output.dtype))
            waves = tf.reshape(waves, tf.shape(output))
            total += tf.reduce_sum(output * waves)
    return [*outputs, *tape.gradient(total, inputs)]


def assert_same(ours, theirs, relative=1e-9):
    for our, their in zip(ours, theirs, strict=True):
        bound = relative * np.abs(their).max()
        np.testing.assert_allclose(our, their, rtol=0, atol=bound)


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("num_iterations", [1, 2, 4])
@pytest.mark.parametrize("softmax_over", ["lower", "higher"])
@pytest.mark.parametrize("logits", [(), (LOGITS,)])
@pytest.mark.parametrize("size", [0.1, 5.0])
def test_dynamic_is_the_plain_form(num_iterations, softmax_over, logits, size):
    inputs = (LOWER, size * KERNEL, BIAS, *logits)
    arguments = {
        "num_iterations": num_iterations,
        "softmax_over": softmax_over,
    }
    assert_same(
        with_gradients(dynamic, inputs, **arguments),
        with_gradients(plain_dynamic, inputs, **arguments),
    )


def test_the_largest_of_these_votes_are_routed_sharply():
    """Or the test above would say little about coefficients."""
    votes = votes_of(LOWER, 5 * KERNEL, BIAS)
    coefficients = dynamic_routing(votes).coefficients
    assert np.abs(coefficients).max() > 0.9
    assert np.abs(coefficients).min() < 1e-3


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("num_iterations", [1, 2, 4])
@pytest.mark.parametrize("size", [0.1, 5.0])
def test_em_is_the_plain_form(num_iterations, size):
    inputs = (LOWER, size * KERNEL, BIAS, *EM_INPUTS)
    arguments = {"num_iterations": num_iterations}
    assert_same(
        with_gradients(em, inputs, **arguments),
        with_gradients(plain_em, inputs, **arguments),
        relative=1e-6,
    )


@pytest.fixture
def float64():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_dtype_policy(before)


def learning_weights(model):
    """All but the biases that batch norms take off: they learn nothing."""
    weights = model.trainable_variables
    return [w for w in weights if not w.path.endswith("/conv/bias")]


def network_with_gradients(model):
    images = uniform(4, *model.input_shape[1:])
    with tf.GradientTape() as tape:
        scores = model(images, training=True)
        loss = losses.MarginLoss()(tf.range(4), scores)
    return [scores, *tape.gradient(loss, learning_weights(model))]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    "num_steps", [0, pytest.param(10, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("variant", ["capnet_dynamic", "capnet_em"])
def test_a_network_learns_as_by_the_plain_form(variant, num_steps, monkeypatch):
    keras.utils.set_random_seed(0)
    # A decoder's loss is none of the losses that are compared here.
    overrides = VARIANT_OVERRIDES[variant] | {"decoder": "none"}
    model = create_model(variant, **overrides)
    optimizer = keras.optimizers.Adam(0.01)
    weights = learning_weights(model)
    before = [weight.numpy() for weight in weights]
    for _ in range(num_steps):
        _, *gradients = network_with_gradients(model)
        optimizer.apply(gradients, weights)
    for weight, value in zip(weights, before, strict=True):
        assert (np.abs(weight - value).max() > 0.01) == (num_steps > 0)
    ours = network_with_gradients(model)

    def plain(lower, activations, *others, **arguments):
        mapping, betas = others[:2], others[2:]
        return plain_em(lower, *mapping, activations, *betas, **arguments)

    monkeypatch.setattr(ops, "factored_em_routing", plain)
    monkeypatch.setattr(ops, "factored_dynamic_routing", plain_dynamic)
    assert_same(ours, network_with_gradients(model), relative=1e-6)


def in_float32(inputs):
    return [tf.cast(tensor, tf.float32) for tensor in inputs]


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("softmax_over", ["lower", "higher"])
def test_dynamic_in_float32_is_close(softmax_over):
    inputs = (LOWER, KERNEL, BIAS, LOGITS)
    arguments = {"softmax_over": softmax_over}
    ours = with_gradients(dynamic, in_float32(inputs), **arguments)
    theirs = with_gradients(plain_dynamic, inputs, **arguments)
    assert_same(ours, theirs, relative=1e-5)


@pytest.mark.usefixtures("images")
def test_em_in_float32_is_close():
    inputs = (LOWER, KERNEL, BIAS, *EM_INPUTS)
    ours = with_gradients(em, in_float32(inputs))
    assert_same(ours, with_gradients(plain_em, inputs), relative=1e-4)


COMMON_MEAN = {
    "of the bias": (LOWER, KERNEL, BIAS + 60),
    "of the capsules": (LOWER + 60, KERNEL[:, :1] + 0.01 * KERNEL, BIAS),
}


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("case", COMMON_MEAN)
def test_em_in_float32_takes_votes_with_a_large_common_mean(case):
    rounded = in_float32((*COMMON_MEAN[case], *EM_INPUTS))
    inputs = [tf.cast(tensor, tf.float64) for tensor in rounded]
    votes = votes_of(*inputs[:3])
    means = tf.abs(tf.reduce_mean(votes, axis=1))
    assert np.median(means / tf.math.reduce_std(votes, axis=1)) > 30
    ours = with_gradients(em, rounded)
    theirs = with_gradients(plain_em, inputs)
    assert_same(ours[:2], theirs[:2], relative=1e-5)
    assert_same(ours[2:], theirs[2:], relative=1e-4)


def test_a_capsule_with_a_single_vote_is_close_in_float32():
    """Its variance is 0, which sums of squares in float32 do not give."""
    activations = tf.constant(np.eye(1, C * P, 5) * 4 + 0.01)
    inputs = (LOWER[:1], 4 * KERNEL, BIAS, activations, *EM_INPUTS[1:])
    plain = plain_em(*inputs)
    vote = votes_of(*inputs[:3])[0, 5]
    assert np.abs(plain.capsules[0] - vote).max(-1).min() < 1e-9
    ours = em(*in_float32(inputs))
    assert_same(ours, plain, relative=1e-4)


ACTIVATIONS = EM_INPUTS[0]
ONE = {"lower": LOWER[:, :1, :1], "activations": ACTIVATIONS[:, :1]}
DEGENERATE = {
    "one lower": ONE | {"kernel": KERNEL[:, :1], "bias": BIAS[:1]},
    "one higher": {"kernel": KERNEL[:, :, :1], "bias": BIAS[:, :1]},
    "zero capsules": {"lower": 0 * LOWER},
    "zero votes": {"lower": 0 * LOWER, "bias": 0 * BIAS},
    "zero weights": {"kernel": 0 * KERNEL, "bias": 0 * BIAS},
    "zero activations": {"activations": 0 * ACTIVATIONS},
    "huge capsules": {"lower": 1e4 * LOWER},
    "tiny capsules": {"lower": 1e-8 * LOWER},
    "a batch of one": {"lower": LOWER[:1], "activations": ACTIVATIONS[:1]},
}


@pytest.mark.slow
@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("case", DEGENERATE)
def test_values_and_gradients_are_finite(case, dtype):
    inputs = {
        "lower": LOWER, "kernel": KERNEL, "bias": BIAS,
        "activations": ACTIVATIONS,
    } | DEGENERATE[case]  # fmt: skip
    *mapping, activations = (tf.cast(t, dtype) for t in inputs.values())
    num_lower, num_higher = activations.shape[1], mapping[2].shape[1]
    betas = [tf.cast(beta[:num_higher], dtype) for beta in EM_INPUTS[1:]]
    logits = tf.cast(LOGITS[:num_lower, :num_higher], dtype)
    for results in (
        with_gradients(dynamic, mapping),
        with_gradients(dynamic, [*mapping, logits]),
        with_gradients(dynamic, mapping, softmax_over="higher"),
        with_gradients(em, [*mapping, activations, *betas]),
    ):
        for tensor in results:
            assert np.isfinite(tf.cast(tensor, tf.float64)).all()


def test_narrow_capsules_are_routed_in_float32():
    mapping = [tf.cast(t, tf.bfloat16) for t in (LOWER, KERNEL, BIAS)]
    for result in (dynamic(*mapping), *em(*mapping, *EM_INPUTS)):
        assert result.dtype == tf.float32


@pytest.mark.parametrize(
    ("function", "others"), [(dynamic, (LOGITS,)), (em, EM_INPUTS)]
)
def test_half_precision_is_finite(function, others):
    inputs = [tf.cast(t, tf.float16) for t in (LOWER, KERNEL, BIAS, *others)]
    for tensor in with_gradients(function, inputs):
        assert np.isfinite(tensor).all()


@pytest.mark.slow
@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    ("function", "others"), [(dynamic, (LOGITS,)), (em, EM_INPUTS)]
)
def test_traced_for_any_batch_it_is_the_same(function, others, jit_compile):
    inputs = (LOWER, KERNEL, BIAS, *others)
    per_image = (LOWER, EM_INPUTS[0])
    traced = tf.function(
        lambda *inputs: with_gradients(function, inputs),
        jit_compile=jit_compile,
        input_signature=[
            tf.TensorSpec((None, *t.shape[1:]), t.dtype)
            if any(t is other for other in per_image)
            else tf.TensorSpec(t.shape, t.dtype)
            for t in inputs
        ],
    )
    assert_same(traced(*inputs), with_gradients(function, inputs))
    one = [t[:1] if any(t is o for o in per_image) else t for t in inputs]
    assert_same(traced(*one), with_gradients(function, one))


@bad_arguments
def test_refuses_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        dynamic(LOWER, KERNEL, BIAS, **arguments)


def test_em_refuses_no_iterations():
    with pytest.raises(ValueError, match="`num_iterations` must be.*Received"):
        em(LOWER, KERNEL, BIAS, *EM_INPUTS, num_iterations=0)
