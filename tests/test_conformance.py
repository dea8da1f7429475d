"""What every layer and every variant must do, over one list of them."""

import functools
import inspect
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import layers, list_variants
from tests import conformance

CASES = sorted(conformance.CASES)
# Quick tests run over all layers and the network that is made for them.
QUICK = {c for c in CASES if "variant:" not in c} | {"variant:encapnet_tiny"}
WITH_SLOW_VARIANTS = [
    case if case in QUICK else pytest.param(case, marks=pytest.mark.slow)
    for case in CASES
]

# All tests of a case in a row: its model is built once.
BY_CASE = functools.partial(pytest.mark.parametrize, "case", scope="module")


def batch(model, size, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    return [
        tf.constant(scale * rng.uniform(size=(size, *i.shape[1:])), "float32")
        for i in model.inputs
    ]


def outputs(model, inputs, **kwargs):
    """Outputs as a flat list of arrays."""
    results = model(inputs if len(inputs) > 1 else inputs[0], **kwargs)
    return [
        np.asarray(tf.cast(r, tf.float32)) for r in tf.nest.flatten(results)
    ]


def training_step(model, inputs):
    """Outputs, and gradients of their squares and all added losses."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        results = model(inputs if len(inputs) > 1 else inputs[0], training=True)
        total = tf.add_n(
            [
                tf.reduce_mean(tf.square(tf.cast(r, tf.float32)))
                for r in tf.nest.flatten(results)
            ]
            + model.losses
        )
    targets = [inputs, model.trainable_variables]
    gradients = tape.gradient(total, targets, unconnected_gradients="zero")
    return tf.nest.flatten(results), tf.nest.flatten(gradients)


def assert_finite(tensors):
    for tensor in tensors:
        assert np.isfinite(np.asarray(tf.cast(tensor, tf.float32))).all()


def test_every_layer_and_variant_is_listed():
    listed = {conformance.LAYERS[name][0] for name in conformance.LAYERS}
    assert {getattr(layers, name) for name in layers.__all__} == listed
    assert set(list_variants()) == set(conformance.VARIANT_OVERRIDES)


@pytest.mark.parametrize("name", sorted(conformance.LAYERS))
def test_config_holds_every_constructor_argument(name):
    make, arguments, _ = conformance.LAYERS[name]
    config = make(**arguments).get_config()
    parameters = set(inspect.signature(make.__init__).parameters)
    assert parameters - {"self", "kwargs"} <= set(config)
    for argument, value in arguments.items():
        assert config[argument] == value
    assert make.from_config(config).get_config() == config


@BY_CASE(WITH_SLOW_VARIANTS)
def test_saved_and_loaded_is_bit_equal(case, tmp_path):
    model = conformance.make(case)
    inputs = batch(model, 3)
    # Moving averages away from their start.
    outputs(model, inputs, training=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for ours, theirs in zip(
        outputs(model, inputs), outputs(loaded, inputs), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert len(loaded.weights) == len(model.weights)


@BY_CASE(WITH_SLOW_VARIANTS)
def test_symbolic_shape_is_the_real_one_at_any_batch_size(case):
    model = conformance.make(case)
    traced = tf.function(
        lambda inputs: model(inputs),
        input_signature=[
            [tf.TensorSpec(i.shape, tf.float32) for i in model.inputs]
            if len(model.inputs) > 1
            else tf.TensorSpec(model.inputs[0].shape, tf.float32)
        ],
    )
    promised = [tuple(o.shape) for o in model.outputs]
    for size in (1, 3):
        inputs = batch(model, size)
        eager = outputs(model, inputs)
        in_graph = outputs(traced, inputs)
        for shape, ours, theirs in zip(promised, eager, in_graph, strict=True):
            assert ours.shape == (size, *shape[1:])
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@BY_CASE(CASES)
def test_mixed_precision_is_finite(case, policy):
    model = conformance.make(case, policy)
    results, gradients = training_step(model, batch(model, 3))
    assert_finite(results + gradients)
    promised = [o.dtype for o in model.outputs]
    assert [r.dtype.name for r in results] == promised


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("scale", [0.0, 1e4])
@BY_CASE(CASES)
def test_extreme_inputs_give_finite_outputs_and_gradients(case, scale, policy):
    model = conformance.make(case, policy)
    inputs = batch(model, 2, scale)
    assert_finite(outputs(model, inputs))
    results, gradients = training_step(model, inputs)
    assert_finite(results + gradients)


@pytest.mark.slow
@BY_CASE(CASES)
def test_xla_agrees_with_eager(case):
    model = conformance.make(case)
    inputs = batch(model, 3)
    compiled = tf.function(lambda inputs: model(inputs), jit_compile=True)
    for ours, theirs in zip(
        outputs(compiled, inputs), outputs(model, inputs), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@BY_CASE([c for c in CASES if c.startswith("layer:")])
def test_training_under_xla_agrees_with_eager(case):
    model = conformance.make(case)
    inputs = batch(model, 3)
    expected, expected_gradients = training_step(model, inputs)
    compiled = tf.function(
        lambda inputs: training_step(model, inputs), jit_compile=True
    )
    results, gradients = compiled(inputs)
    for ours, theirs in zip(results, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    # Biases before a batch normalisation have no gradient but rounding: the
    # scale is that of the largest one.
    bound = 1e-3 * max(np.abs(g).max() for g in expected_gradients)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=bound)


def answers():
    """Outputs and the input's gradient of every case."""
    results = {}
    for case in CASES:
        model = conformance.make(case)
        inputs = batch(model, 2)
        for number, output in enumerate(outputs(model, inputs)):
            results[f"{case}/{number}"] = output
        _, gradients = training_step(model, inputs)
        results[f"{case}/gradient"] = np.asarray(gradients[0])
    return results


SCRIPT = """
import sys
import numpy as np
from tests.test_conformance import answers
np.savez(sys.argv[1], **answers())
"""


@pytest.mark.slow
def test_agrees_without_onednn(tmp_path):
    """Both processes build the same weights from the same seed."""
    path = tmp_path / "without.npz"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        check=True,
        env=os.environ | {"TF_ENABLE_ONEDNN_OPTS": "0"},
    )
    expected = answers()
    with np.load(path) as without:
        assert set(without.files) == set(expected)
        for key, value in expected.items():
            bound = 1e-3 * max(1e-3, np.abs(value).max())
            np.testing.assert_allclose(
                without[key], value, rtol=1e-3, atol=bound, err_msg=key
            )
