import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.layers import BatchNorm

X = np.random.default_rng(0).normal(2, 3, size=(4, 3, 2, 5)).astype("float32")


def pair(**kwargs):
    """Ours and Keras' own, with the same weights."""
    ours = BatchNorm(**kwargs)
    options = {"momentum": 0.9, "epsilon": 1e-5} | kwargs
    theirs = keras.layers.BatchNormalization(**options)
    rng = np.random.default_rng(1)
    for layer in (ours, theirs):
        layer.build(X.shape)
    for mine, other in zip(ours.variables, theirs.variables, strict=True):
        value = rng.uniform(0.5, 1.5, size=mine.shape)
        mine.assign(value)
        other.assign(value)
    return ours, theirs


def step(layer, x, training, call=None):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = (call or layer)(x, training=training)
        total = tf.reduce_sum(tf.sin(tf.cast(y, tf.float32)))
    gradients = tape.gradient(total, [x, layer.gamma.value, layer.beta.value])
    return y, *gradients, *(v.numpy() for v in layer.non_trainable_variables)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("momentum", [0.9, 0.5])
def test_equals_keras_own(training, momentum):
    ours, theirs = pair(momentum=momentum)
    for mine, other in zip(
        step(ours, X, training), step(theirs, X, training), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


def test_moving_averages_hold_the_plain_mean_and_variance():
    layer = BatchNorm()
    layer(X, training=True)
    np.testing.assert_allclose(
        layer.moving_mean, 0.1 * X.mean((0, 1, 2)), rtol=1e-5
    )
    np.testing.assert_allclose(
        layer.moving_variance, 0.9 + 0.1 * X.var((0, 1, 2)), rtol=1e-5
    )


def test_one_value_per_channel_has_no_variance():
    layer = BatchNorm()
    y = layer(X[:1, :1, :1], training=True)
    np.testing.assert_allclose(y, 0, atol=1e-6)
    np.testing.assert_allclose(layer.moving_variance, 0.9, rtol=1e-6)


def test_frozen_layer_uses_and_keeps_its_averages():
    ours, _ = pair()
    ours.trainable = False
    before = [v.numpy() for v in ours.variables]
    np.testing.assert_array_equal(
        ours(X, training=True), ours(X, training=False)
    )
    for variable, value in zip(ours.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"axis": 1},
        {"scale": False},
        {"center": False},
        {"dtype": "float64"},
        {"axis": 3},
    ],
)
def test_other_arguments_mean_what_they_mean_in_keras(kwargs):
    ours, theirs = pair(**kwargs)
    for training in (True, False):
        np.testing.assert_allclose(
            ours(X, training=training),
            theirs(X, training=training),
            rtol=1e-4,
            atol=1e-5,
        )


def test_rows_are_normalised_too():
    layer = BatchNorm()
    y = layer(X[:, 0, 0], training=True)
    np.testing.assert_allclose(tf.reduce_mean(y, 0), 0, atol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_is_close_to_float32(policy):
    expected = BatchNorm()(X, training=True)
    y = BatchNorm(dtype=policy)(X, training=True)
    np.testing.assert_allclose(tf.cast(y, tf.float32), expected, atol=3e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("training", [True, False])
def test_a_bias_is_as_if_added_before(training, dtype):
    ours, theirs = pair(dtype=dtype)
    bias = tf.range(5, dtype=dtype)

    def with_bias(x, training):
        return ours(x, bias=bias, training=training)

    def added(x, training):
        return theirs(x + bias, training=training)

    x = X.astype(dtype)
    for mine, other in zip(
        step(ours, x, training, with_bias),
        step(theirs, x, training, added),
        strict=True,
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("trainable", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_a_bias_has_its_gradient(training, trainable):
    ours, theirs = pair()
    ours.trainable = theirs.trainable = trainable
    bias = tf.range(5.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(bias)
        mine = ours(X, bias=bias, training=training) ** 3
        other = theirs(X + bias, training=training) ** 3
    expected = tape.gradient(other, bias)
    np.testing.assert_allclose(
        tape.gradient(mine, bias), expected, rtol=1e-4, atol=1e-2
    )
    if training and trainable:
        np.testing.assert_array_equal(tape.gradient(mine, bias), 0)
