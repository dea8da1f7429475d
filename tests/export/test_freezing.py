import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.layers import BatchNorm, GroupedConv2D
from export.graph.freezing import freeze
from export.graph.inference import inference
from tests.conformance import VARIANT_OVERRIDES
from tests.export.conftest import tolerance, untrained_run


def nodes(function, spec):
    """All nodes of what was frozen, the inner function's too."""
    traced = tf.function(function, input_signature=[spec])
    graph = traced.get_concrete_function().graph.as_graph_def()
    inner = [n for f in graph.library.function for n in f.node_def]
    return [*graph.node, *inner]


def compare(function, spec, relative=2e-5):
    """Freezes, checks the values and returns the nodes."""
    frozen = freeze(function, spec)
    shape = (3, *spec.shape[1:])
    images = tf.constant(
        np.random.default_rng(1).uniform(size=shape), "float32"
    )
    expected, found = function(images), frozen(images)
    assert set(expected) == set(found)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=relative, atol=2e-6)
    return nodes(frozen, spec)


@pytest.mark.slow
def test_frozen_variants_compute_the_same(variant_run):
    spec = tf.TensorSpec(variant_run.model.input_shape, tf.float32)
    relative = tolerance(variant_run.recipe.variant, 2e-5)
    found = compare(inference(variant_run), spec, relative)
    kinds = {node.op for node in found}
    assert not kinds & {
        "FusedBatchNormV3", "VarHandleOp", "ReadVariableOp", "IdentityN",
        "Conv2DBackpropInput", "StatefulPartitionedCall",
    }  # fmt: skip
    for word in ("agreement", "generator", "extractor", "sinkhorn"):
        assert not any(word in node.name.lower() for node in found)


@pytest.mark.parametrize("variant", ["encapnet_tiny", "resnet18"])
def test_frozen_graph_stores_the_kernels_once_and_nothing_else(
    variant, tmp_path
):
    run = untrained_run(tmp_path, variant, **VARIANT_OVERRIDES[variant])
    spec = tf.TensorSpec(run.model.input_shape, tf.float32)
    constants = [
        tf.make_ndarray(node.attr["value"].tensor)
        for node in compare(inference(run), spec)
        if node.op == "Const" and node.attr["dtype"].type == 1
    ]
    kernels = [
        w.numpy()
        for w in run.model.trainable_weights
        if len(w.shape) > 1 and "agreement" not in w.path
    ]
    stored = sum(c.size for c in constants if c.ndim > 1)
    assert stored == sum(kernel.size for kernel in kernels)
    vectors = sum(c.size for c in constants if c.ndim == 1)
    # Of each batch norm's four vectors at most two are left.
    norms = [w for w in run.model.weights if "norm" in w.path
             and "agreement" not in w.path]  # fmt: skip
    biases = [w for w in run.model.weights if w.path.endswith("bias")]
    assert vectors <= sum(w.shape[0] for w in norms) / 2 + sum(
        w.shape[0] for w in biases
    )


SPEC = tf.TensorSpec((None, 8, 8, 4), tf.float32)


def lively(norm):
    rng = np.random.default_rng(2)
    for weight in norm.weights:
        weight.assign(rng.uniform(0.5, 2, weight.shape))
    return norm


def built(*layers):
    for layer in layers:
        layer.build((None, 8, 8, 4))
        if isinstance(layer, BatchNorm):
            lively(layer)
    return layers


def count(found, op):
    return sum(node.op == op for node in found)


def test_norm_after_a_sum_of_convolutions_goes_into_both():
    first, second, norm = built(
        GroupedConv2D(4, 3), GroupedConv2D(4, 1, use_bias=False), BatchNorm()
    )
    found = compare(lambda x: {"y": norm(first(x) + second(x))}, SPEC)
    assert count(found, "Mul") == 0
    assert count(found, "BiasAdd") == 1


def test_norm_after_anything_else_is_a_product_and_a_sum():
    (norm,) = built(BatchNorm())
    found = compare(lambda x: {"y": norm(tf.nn.relu(x))}, SPEC)
    assert (count(found, "Mul"), count(found, "AddV2")) == (1, 1)


def test_a_convolution_that_others_read_keeps_its_kernel():
    convolution, norm = built(GroupedConv2D(4, 3), BatchNorm())

    def both(inputs):
        maps = convolution(inputs)
        return {"a": norm(maps), "b": tf.nn.relu(maps)}

    assert count(compare(both, SPEC), "Mul") == 1


def test_a_convolution_that_leaves_the_graph_keeps_its_kernel():
    convolution, norm = built(GroupedConv2D(4, 3), BatchNorm())

    def both(inputs):
        maps = convolution(inputs)
        return {"maps": maps, "normed": norm(maps)}

    compare(both, SPEC)


def test_two_norms_in_a_row_both_count():
    convolution, first, second = built(
        GroupedConv2D(4, 3), BatchNorm(), BatchNorm()
    )
    compare(lambda x: {"y": second(first(convolution(x)))}, SPEC)


def test_later_training_does_not_reach_what_is_frozen():
    (norm,) = built(BatchNorm())
    frozen = freeze(lambda x: {"y": norm(x)}, SPEC)
    images = tf.ones((1, 8, 8, 4))
    before = frozen(images)["y"].numpy()
    norm.gamma.assign(norm.gamma * 3)
    np.testing.assert_array_equal(frozen(images)["y"], before)


def test_a_keras_model_of_other_layers_freezes_too():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 4)),
            keras.layers.Conv2D(6, 3),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    lively(model.layers[1])
    compare(lambda x: {"y": model(x, training=False)}, SPEC)
