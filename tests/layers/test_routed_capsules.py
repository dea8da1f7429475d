import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import create_model, ops
from encapnet_tf.layers import RoutedCapsules
from encapnet_tf.losses import MarginLoss
from tests import golden_files, reference

TOLERANCE = {"float32": 2e-5, "float64": 1e-9}
X = np.random.default_rng(0).normal(size=(2, 3, 2, 8))


def from_golden(name, dtype):
    content, meta = golden_files.load(name)
    layer = RoutedCapsules(
        meta["groups"],
        meta["num_out"],
        meta["out_dim"],
        routing=meta["route"].lower(),
        num_iterations=meta["R"],
        dtype=dtype,
    )
    x = tf.constant(golden_files.maps(content["in/x"]), dtype)
    activations = ()
    if layer.routing == "em":
        activations = (tf.constant(content["in/a"], dtype),)
    layer.build(x.shape, *(a.shape for a in activations))
    layer.kernel.assign(content["w/W.weight"][:, :, 0, 0].T)
    layer.bias.assign(content["w/W.bias"])
    if layer.routing == "em":
        layer.beta_v.assign(content["w/beta_v"])
        layer.beta_a.assign(content["w/beta_a"])
    return content, layer(x, *activations)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_dynamic_capsules_are_the_authors(dtype):
    content, capsules = from_golden("routing_dynamic_R3", dtype)
    np.testing.assert_allclose(
        capsules, content["out/v"], atol=TOLERANCE[dtype]
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_em_capsules_and_activations_are_the_authors(dtype):
    content, (capsules, activations) = from_golden("routing_em_R3", dtype)
    np.testing.assert_allclose(
        capsules, content["out/v"], atol=TOLERANCE[dtype]
    )
    np.testing.assert_allclose(
        activations, content["out/a"], atol=TOLERANCE[dtype]
    )


def test_votes_equal_a_loop_over_capsules_and_places():
    layer = RoutedCapsules(4, 3, 5, dtype="float64")
    layer.build(X.shape)
    layer.bias.assign(np.random.default_rng(1).normal(size=layer.bias.shape))
    kernel, bias = layer.kernel.numpy(), layer.bias.numpy()
    votes = layer.votes(X).numpy()
    for c in range(4):
        for h in range(3):
            for w in range(2):
                outputs = slice(c * 15, c * 15 + 15)
                lower = X[:, h, w, c * 2 : c * 2 + 2]
                expected = lower @ kernel[:, outputs] + bias[outputs]
                np.testing.assert_allclose(
                    votes[:, c * 6 + h * 2 + w].reshape(2, 15), expected
                )


@pytest.mark.parametrize("logits", ["zero", "random", "learnable"])
def test_first_logits(logits):
    layer = RoutedCapsules(4, 3, 5, logits=logits, dtype="float64")
    layer.build(X.shape)
    names = [v.name for v in layer.trainable_variables]
    assert ("first_logits" in names) == (logits == "learnable")
    first = np.zeros((24, 3))
    if logits != "zero":
        assert layer.first_logits.shape == (24, 3)
        if logits == "learnable":
            assert not layer.first_logits.numpy().any()
            layer.first_logits.assign(np.arange(72.0).reshape(24, 3) / 72)
        first = layer.first_logits.numpy()
        assert first.min() >= 0
        assert first.max() < 1
        assert first.std() > 0.1
    votes = layer.votes(X).numpy()
    np.testing.assert_allclose(
        layer(X), reference.dynamic_routing(votes, first, 3, 0), atol=1e-12
    )


def test_learnable_logits_learn():
    layer = RoutedCapsules(4, 3, 5, logits="learnable", dtype="float64")
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(layer(X)[..., 0])
    gradient = tape.gradient(total, layer.first_logits.value)
    assert np.abs(gradient).max() > 1e-6


def plain(layer, inputs, *activations):
    """What the layer does, by way of the votes."""
    votes = layer.votes(inputs)
    if layer.routing == "em":
        return ops.em_routing(votes, *activations, layer.beta_v, layer.beta_a)
    logits = None if layer.logits == "zero" else layer.first_logits
    return ops.dynamic_routing(
        votes, softmax_over=layer.softmax_over, logits=logits
    ).capsules


def with_gradients(function, layer, inputs):
    variables = [v.value for v in layer.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = tf.nest.flatten(function(*inputs))
        total = tf.add_n([tf.reduce_sum((o - 0.5) ** 4) for o in outputs])
    return [*outputs, *tape.gradient(total, [*inputs, *variables])]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        {"softmax_over": "lower"},
        {"softmax_over": "higher", "logits": "random"},
        {"softmax_over": "lower", "logits": "learnable"},
        {"routing": "em"},
    ],
)
def test_a_trained_layer_routes_as_the_plain_form(arguments):
    keras.utils.set_random_seed(0)
    layer = RoutedCapsules(4, 3, 5, dtype="float64", **arguments)
    inputs = [tf.constant(X)]
    if layer.routing == "em":
        activations = np.random.default_rng(1).uniform(size=(2, 24))
        inputs.append(tf.constant(activations))
    layer(*inputs)
    before = layer.kernel.numpy()
    optimizer = keras.optimizers.Adam(0.1)
    for _ in range(15):
        results = with_gradients(layer, layer, inputs)
        count = len(layer.trainable_variables)
        optimizer.apply(results[-count:], layer.trainable_variables)
    assert np.abs(layer.kernel.numpy() - before).max() > 0.5
    ours = with_gradients(layer, layer, inputs)
    theirs = with_gradients(lambda *i: plain(layer, *i), layer, inputs)
    for our, their in zip(ours, theirs, strict=True):
        bound = 1e-6 * np.abs(their).max()
        np.testing.assert_allclose(our, their, rtol=0, atol=bound)


def test_random_logits_repeat_under_a_seed():
    def drawn(seed):
        keras.utils.set_random_seed(seed)
        layer = RoutedCapsules(4, 3, 5, logits="random")
        layer.build(X.shape)
        return layer.first_logits.numpy()

    np.testing.assert_array_equal(drawn(3), drawn(3))
    assert (drawn(3) != drawn(4)).any()


@pytest.mark.parametrize("routing", ["dynamic", "em"])
def test_output_size_lays_the_same_capsules_out(routing):
    def routed(**kwargs):
        keras.utils.set_random_seed(0)
        layer = RoutedCapsules(4, 12, 5, routing=routing, **kwargs)
        inputs = (X.astype("float32"),)
        if routing == "em":
            inputs += (np.ones((2, 3, 2, 4), "float32"),)
        outputs = layer(*inputs)
        return outputs[0] if routing == "em" else outputs

    row, maps = routed().numpy(), routed(output_size=(2, 3)).numpy()
    assert maps.shape == (2, 2, 3, 10)
    for c in range(2):
        for h in range(2):
            for w in range(3):
                np.testing.assert_array_equal(
                    maps[:, h, w, c * 5 : c * 5 + 5],
                    row[:, c * 6 + h * 3 + w],
                )


def test_activations_as_maps_or_in_a_row_are_the_same():
    layer = RoutedCapsules(4, 3, 5, routing="em", dtype="float64")
    maps = np.random.default_rng(1).uniform(size=(2, 3, 2, 4))
    row = maps.transpose(0, 3, 1, 2).reshape(2, 24)
    for ours, theirs in zip(layer(X, maps), layer(X, row), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_betas_start_between_zero_and_one():
    layer = RoutedCapsules(4, 500, 1, routing="em")
    layer.build((None, 3, 2, 8), (None, 3, 2, 4))
    for beta in (layer.beta_v.numpy(), layer.beta_a.numpy()):
        assert 0 <= beta.min() < 0.1
        assert 0.9 < beta.max() < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_input_capsules": 0}, "`num_input_capsules` must be.*Received"),
        ({"num_capsules": 0}, "`num_capsules` must be.*Received"),
        ({"capsule_dim": -1}, "`capsule_dim` must be.*Received"),
        ({"num_iterations": 0}, "`num_iterations` must be.*Received"),
        ({"routing": "self"}, "`routing` must be one of.*Received"),
        ({"softmax_over": "all"}, "`softmax_over` must be one of.*Received"),
        ({"logits": "ones"}, "`logits` must be one of.*Received"),
        ({"output_size": (2, 2)}, "multiple of the places.*Received"),
        ({"num_input_capsules": 3}, "input channels must be.*Received"),
        ({"routing": "em"}, "only EM routing, takes `act.*Received.*None"),
    ],
)
def test_refuses_bad_arguments(arguments, message):
    defaults = {"num_input_capsules": 4, "num_capsules": 3, "capsule_dim": 5}
    with pytest.raises(ValueError, match=message):
        RoutedCapsules(**defaults | arguments)(X)


def test_dynamic_routing_refuses_activations():
    with pytest.raises(ValueError, match="only EM.*Received: routing='dyn"):
        RoutedCapsules(4, 3, 5)(X, np.ones((2, 24)))


@pytest.mark.slow
def test_a_newborn_capnet_has_gradients():
    """Two squashes of votes that start too small would leave none."""
    keras.utils.set_random_seed(0)
    model = create_model("capnet_dynamic")
    images = np.random.default_rng(0).uniform(size=(2, 32, 32, 3))
    with tf.GradientTape() as tape:
        loss = MarginLoss()([0, 1], model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(
        model.trainable_variables, gradients, strict=True
    ):
        if variable.name == "kernel":
            assert np.abs(gradient).max() > 1e-9, variable.path
