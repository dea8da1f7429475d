import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.ops import grouped_conv2d
from encapnet_tf.ops.forms import on_tuned_cpu, plain_forms
from encapnet_tf.ops.row_conv import row_conv2d
from tests import reference

IN, OUT = 3, 4
# Kernel size, stride, height, width; the last two meet few rows or none.
FORMS = [
    (3, 1, 4, 4), (3, 2, 8, 8), (3, 2, 5, 7), (5, 1, 4, 3),
    (7, 2, 8, 8), (7, 2, 5, 9), (3, 3, 7, 8), (7, 1, 2, 3),
    (7, 2, 1, 1), (3, 4, 9, 10),
]  # fmt: skip


def tensors(size, stride, height, width):
    """Inputs, kernel and an upstream gradient."""
    rng = np.random.default_rng(0)
    shapes = (
        (2, height, width, IN),
        (size, size, IN, OUT),
        (2, -(-height // stride), -(-width // stride), OUT),
    )
    return [tf.constant(rng.normal(size=shape)) for shape in shapes]


def with_gradients(convolve, inputs, kernel, upstream):
    with tf.GradientTape() as tape:
        tape.watch((inputs, kernel))
        outputs = convolve(inputs, kernel)
    return outputs, *tape.gradient(outputs, (inputs, kernel), upstream)


def padded_conv(size, stride):
    """TensorFlow's own convolution, of padded maps."""
    pad = [[0, 0], *[[(size - 1) // 2] * 2] * 2, [0, 0]]
    return lambda inputs, kernel: tf.nn.conv2d(
        tf.pad(inputs, pad), kernel, stride, "VALID"
    )


def assert_loops_over_places(convolve, form):
    inputs, kernel, _ = tensors(*form)
    expected = reference.grouped_conv(
        inputs.numpy(), kernel.numpy(), 1, form[1]
    )
    ours = convolve(inputs, kernel, stride=form[1])
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def assert_same_with_gradients(ours, theirs, given, tolerance):
    for mine, other in zip(
        with_gradients(ours, *given),
        with_gradients(theirs, *given),
        strict=True,
    ):
        assert mine.shape == other.shape
        np.testing.assert_allclose(mine, other, atol=tolerance)


@pytest.mark.parametrize("form", FORMS)
def test_equals_a_loop_over_places(form):
    assert_loops_over_places(row_conv2d, form)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_tensorflow(form, native):
    size, stride, *_ = form
    theirs = padded_conv(size, stride)

    def ours(inputs, kernel):
        forward = theirs if native else None
        return row_conv2d(inputs, kernel, stride=stride, forward=forward)

    assert_same_with_gradients(ours, theirs, tensors(*form), 1e-12)


def test_takes_any_batch_in_one_trace():
    _, kernel, _ = tensors(5, 1, 4, 4)
    traces = []

    @tf.function(input_signature=[tf.TensorSpec((None, 4, 4, IN), tf.float64)])
    def gradient(inputs):
        traces.append(1)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(row_conv2d(inputs, kernel) ** 2)
        return tape.gradient(loss, inputs)

    for batch in (1, 3):
        assert gradient(tf.ones((batch, 4, 4, IN), tf.float64)).shape == (
            batch,
            4,
            4,
            IN,
        )
    assert len(traces) == 1


def test_no_sum_may_change_its_order():
    """AddN adds first what it can overwrite: another order, other rounding."""
    form = (7, 2, 8, 8)
    traced = tf.function(
        lambda *tensors: with_gradients(
            lambda inputs, kernel: row_conv2d(inputs, kernel, stride=2),
            *tensors,
        )
    ).get_concrete_function(*tensors(*form))
    types = {operation.type for operation in traced.graph.get_operations()}
    assert "AddN" not in types


def operations(
    side, kernel_size, stride, dtype="float32", groups=1, gradients=True
):
    """The operations that a convolution of such maps consists of."""
    kernel = tf.ones((kernel_size, kernel_size, 4 // groups, 4), dtype)
    spec = tf.TensorSpec((None, side, side, 4), dtype)

    def convolve(maps, kernel=kernel):
        return grouped_conv2d(maps, kernel, groups=groups, stride=stride)

    @tf.function
    def call(maps):
        if not gradients:
            return convolve(maps)
        return with_gradients(convolve, maps, kernel, None)

    graph = call.get_concrete_function(spec).graph
    return {operation.type for operation in graph.get_operations()}


@pytest.mark.skipif(not on_tuned_cpu(), reason="the choice is for CPUs")
def test_small_maps_are_products_on_this_cpu_only():
    for small in ((4, 3, 1), (8, 3, 2), (4, 5, 1), (16, 7, 2)):
        assert "MatMul" in operations(*small)
        assert "MatMul" in operations(*small, "bfloat16")
        with plain_forms():
            assert "MatMul" not in operations(*small)
    for other in ((8, 5, 1), (16, 3, 2), (4, 1, 1)):
        assert "MatMul" not in operations(*other)
    assert "MatMul" not in operations(None, 5, 1, gradients=False)
    assert "MatMul" not in operations(4, 5, 1, "float16")
    assert "MatMul" not in operations(4, 5, 1, groups=2)


@pytest.mark.skipif(not on_tuned_cpu(), reason="the choice is for CPUs")
def test_forward_only_large_kernels_in_float32_are_products():
    for large in ((4, 5, 1), (16, 7, 2)):
        assert "MatMul" in operations(*large, gradients=False)
        assert "MatMul" not in operations(*large, "bfloat16", gradients=False)
    assert "MatMul" not in operations(8, 3, 2, gradients=False)


@pytest.mark.skipif(not on_tuned_cpu(), reason="the choice is for CPUs")
def test_groups_are_convolved_in_float32_on_this_cpu_only():
    assert "Cast" in operations(8, 3, 1, "bfloat16", groups=2)
    assert "Cast" not in operations(8, 3, 1, groups=2)
    assert "Cast" not in operations(8, 3, 1, "bfloat16")
    with plain_forms():
        assert "Cast" not in operations(8, 3, 1, "bfloat16", groups=2)
