"""Forms are chosen by the device an operation stands on, or plain."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import ops
from encapnet_tf.ops import forms, plain_forms

MAPS, KERNEL = tf.ones((2, 4, 4, 16)), tf.ones((3, 3, 1, 16))


def convolve():
    return ops.grouped_conv2d(MAPS, KERNEL, groups=16)


def traced(function):
    """The operations of a function, those for control left out."""
    graph = tf.function(function).get_concrete_function().graph
    return [op for op in graph.get_operations() if op.type != "NoOp"]


def kernels(function):
    return [
        tuple(op.inputs[1].shape)
        for op in traced(function)
        if op.type == "Conv2D"
    ]


def on(device):
    """The convolution with a device asked for, whatever this machine has."""

    def call():
        with tf.device(device):
            return convolve()

    return call


def test_a_gpu_gets_the_textbook_form_and_a_cpu_its_own():
    assert kernels(on("/GPU:0")) == [(3, 3, 1, 16)]
    assert kernels(on("/CPU:0")) == kernels(convolve) != [(3, 3, 1, 16)]


def test_a_function_takes_the_form_of_its_callers_device(monkeypatch):
    """As on a machine with GPUs, where eager tensors lie on the first."""

    class OnGPU:
        device = "/job:localhost/replica:0/task:0/device:GPU:0"

    monkeypatch.setattr(tf, "zeros", lambda shape: OnGPU)
    assert kernels(convolve) == [(3, 3, 1, 16)]
    assert kernels(on("/CPU:0")) != [(3, 3, 1, 16)]


@pytest.mark.parametrize("eager", [True, False])
def test_plain_forms_end_with_the_context(eager):
    see = forms.on_tuned_cpu if eager else look_in_a_function
    with tf.device("/CPU:0"):
        assert see()
        with plain_forms():
            assert not see()
            with plain_forms():
                assert not see()
            assert not see()
        assert see()


def look_in_a_function():
    seen = []
    tf.function(
        lambda: seen.append(forms.on_tuned_cpu())
    ).get_concrete_function()
    return seen[0]


def test_plain_forms_are_each_operations_textbook_form():
    vectors = tf.ones((4, 3))
    with plain_forms():
        assert kernels(convolve) == [(3, 3, 1, 16)]
        squash = {
            op.type for op in traced(lambda: ops.activate_capsules(MAPS, 4))
        }
        assert "MatMul" not in squash
        solve = functools.partial(ops.sinkhorn_divergence, vectors, 2 * vectors)
        assert "Exp" in {op.type for op in traced(solve)}
        assert "Log" in {op.type for op in traced(solve)}
    assert "Log" not in {op.type for op in traced(solve)}


def test_both_forms_of_the_solver_agree():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 6, 5))
    tuned = ops.sinkhorn_divergence(x, y)
    with plain_forms():
        plain = ops.sinkhorn_divergence(x, y)
    np.testing.assert_allclose(plain, tuned, rtol=1e-9)
