import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.layers import BatchNorm, ConvNorm, GroupedConv2D
from encapnet_tf.layers.conv_norm import convolve_and_normalize
from encapnet_tf.ops.forms import plain_forms

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 6, 6, 4))


def built(layer, input_shape):
    """The layer with weights away from their start."""
    layer.build(input_shape)
    for weight in layer.weights:
        values = RNG.normal(size=weight.shape)
        positive = weight.name in ("gamma", "moving_variance")
        weight.assign(np.abs(values) + 0.5 if positive else values)
    return layer


def convolution(kernel_size, groups=1, stride=2, **kwargs):
    layer = GroupedConv2D(
        8, kernel_size, stride, groups, dtype="float64", **kwargs
    )
    return built(layer, X.shape)


def normalization(dtype="float64"):
    return built(BatchNorm(dtype=dtype), (None, 3, 3, 8))


def copied(norm):
    twin = BatchNorm(dtype=norm.dtype_policy)
    twin.build((None, 3, 3, 8))
    twin.set_weights(norm.get_weights())
    return twin


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("with_plus", [True, False])
@pytest.mark.parametrize(
    "convolutions",
    [
        [convolution(3)],
        [convolution(3, groups=4), convolution(3)],
        [convolution(1, groups=2), convolution(3)],
        [convolution(5, groups=4), convolution(3, skip_own_block=2)],
        [convolution(3, groups=2), convolution(3, groups=2, use_bias=False)],
    ],
)
def test_equals_its_parts_one_by_one(convolutions, with_plus, training):
    norm = normalization()
    plus = RNG.normal(size=(3, 3, 3, 8)) if with_plus else None
    twin = copied(norm)
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        ours = convolve_and_normalize(
            convolutions, norm, x, plus=plus, training=training
        )
        maps = sum(conv(x) for conv in convolutions)
        plain = twin(maps if plus is None else maps + plus, training=training)
        totals = tf.reduce_sum(ours**3), tf.reduce_sum(plain**3)
    np.testing.assert_allclose(ours, plain, atol=1e-10)
    for mine, other in zip(norm.weights, twin.weights, strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-10)
    sources = [x, *(conv.kernel.value for conv in convolutions)]
    for mine, other in zip(
        tape.gradient(totals[0], sources),
        tape.gradient(totals[1], sources),
        strict=True,
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-8, atol=1e-8)


def folded(layer, x):
    """Whether the traced layer has no batch norm at inference."""
    traced = tf.function(lambda x: layer(x, training=False))
    graph = traced.get_concrete_function(x).graph
    kinds = [op.type for op in graph.get_operations()]
    return "FusedBatchNormV3" not in kinds


def test_at_inference_the_norm_goes_into_a_small_kernel():
    layer = built(ConvNorm(8, 3), X.shape)
    x = tf.constant(X, tf.float32)
    assert folded(layer, x)
    in_maps = layer.norm(layer.conv(x), training=False)
    np.testing.assert_allclose(layer(x), tf.nn.relu(in_maps), atol=1e-4)


def test_a_large_kernel_is_left_alone():
    layer = built(ConvNorm(8, 7), (None, 2, 2, 4))
    assert not folded(layer, tf.ones((1, 2, 2, 4)))


def test_maps_of_unknown_size_are_normalised_themselves():
    layer = built(ConvNorm(8, 3), X.shape)
    traced = tf.function(
        layer, input_signature=[tf.TensorSpec((None, None, None, 4))]
    )
    x = tf.constant(X, tf.float32)
    np.testing.assert_allclose(traced(x), layer(x), atol=1e-4)


def test_exported_graphs_leave_the_norm_to_the_exporter():
    layer = built(ConvNorm(8, 3), X.shape)
    with plain_forms():
        assert not folded(layer, tf.constant(X, tf.float32))


def test_a_frozen_norm_is_folded_in_training_too():
    layer = built(ConvNorm(8, 3), X.shape)
    layer.norm.trainable = False
    before = layer.get_weights()
    x = tf.constant(X, tf.float32)
    np.testing.assert_allclose(layer(x, training=True), layer(x), atol=1e-6)
    for old, new in zip(before, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_bias_has_no_gradient_in_training():
    """Not rounding noise either: Adam would make steps of it."""
    layer = built(ConvNorm(8, 3), X.shape)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(layer(X.astype("float32"), training=True) ** 2)
    gradient = tape.gradient(total, layer.conv.bias.value)
    np.testing.assert_array_equal(gradient, np.zeros(8))


def test_without_relu_values_may_be_negative():
    x = X.astype("float32")
    assert np.min(ConvNorm(8, 3, relu=False)(x, training=True)) < 0
    assert np.min(ConvNorm(8, 3)(x, training=True)) == 0


def test_folding_follows_the_weights():
    layer = built(ConvNorm(8, 3), X.shape)
    ask = tf.function(lambda x: layer(x, training=False))
    x = tf.constant(X, tf.float32)
    before = ask(x)
    layer.norm.gamma.assign(2 * layer.norm.gamma)
    layer.norm.beta.assign(2 * layer.norm.beta)
    np.testing.assert_allclose(ask(x), 2 * before, rtol=1e-4, atol=1e-4)


def test_mixed_precision_is_not_folded():
    layer = ConvNorm(8, 3, dtype=keras.DTypePolicy("mixed_bfloat16"))
    layer.build(X.shape)
    assert not folded(layer, tf.constant(X, tf.float32))
