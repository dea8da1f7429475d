import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.ops.placement import for_use_elsewhere, on_this_cpu
from encapnet_tf.ops.strided_conv import strided_conv2d
from tests import reference
from tests.ops.test_row_conv import (
    FORMS,
    IN,
    operations,
    tensors,
    with_gradients,
)

STRIDED = [form for form in FORMS if form[1] > 1]


@pytest.mark.parametrize("form", STRIDED)
def test_equals_a_loop_over_places(form):
    inputs, kernel, _ = tensors(*form)
    expected = reference.grouped_conv(
        inputs.numpy(), kernel.numpy(), 1, form[1]
    )
    ours = strided_conv2d(inputs, kernel, stride=form[1])
    np.testing.assert_allclose(ours, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", STRIDED)
def test_gradients_are_those_of_padded_maps(form, dtype):
    size, stride, *_ = form
    pad = [[0, 0], *[[(size - 1) // 2] * 2] * 2, [0, 0]]
    given = [tf.cast(tensor, dtype) for tensor in tensors(*form)]

    def padded(inputs, kernel):
        return tf.nn.conv2d(tf.pad(inputs, pad), kernel, stride, "VALID")

    def ours(inputs, kernel):
        return strided_conv2d(inputs, kernel, stride=stride)

    for mine, other in zip(
        with_gradients(ours, *given),
        with_gradients(padded, *given),
        strict=True,
    ):
        assert mine.shape == other.shape
        tolerance = 1e-12 if dtype == "float64" else 1e-4
        np.testing.assert_allclose(mine, other, atol=tolerance)


def test_takes_any_batch():
    _, kernel, _ = tensors(3, 2, 8, 8)

    @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, IN), tf.float64)])
    def gradient(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(strided_conv2d(inputs, kernel, stride=2) ** 2)
        return tape.gradient(loss, inputs)

    for batch in (1, 3):
        maps = tf.ones((batch, 8, 8, IN), tf.float64)
        assert gradient(maps).shape == maps.shape


@pytest.mark.skipif(not on_this_cpu(), reason="the choice is for CPUs")
def test_strided_maps_have_no_padded_copy_on_this_cpu_only():
    for strided in ((16, 3, 2), (32, 7, 2), (16, 3, 3)):
        assert "Pad" not in operations(*strided)
        assert "Pad" in operations(*strided, "bfloat16")
        assert "Pad" in operations(*strided, groups=2)
        with for_use_elsewhere():
            assert "Pad" in operations(*strided)
    assert "Pad" in operations(None, 3, 2, gradients=False)
