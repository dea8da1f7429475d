import pytest
import tensorflow as tf

from encapnet_tf.ops.forms import on_tuned_cpu, plain_forms
from encapnet_tf.ops.strided_conv import strided_conv2d
from tests.ops.test_row_conv import (
    FORMS,
    IN,
    assert_loops_over_places,
    assert_same_with_gradients,
    operations,
    padded_conv,
    tensors,
)

STRIDED = [form for form in FORMS if form[1] > 1]


@pytest.mark.parametrize("form", STRIDED)
def test_equals_a_loop_over_places(form):
    assert_loops_over_places(strided_conv2d, form)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-12)]
)
@pytest.mark.parametrize("form", STRIDED)
def test_gradients_are_those_of_padded_maps(form, dtype, tolerance):
    size, stride, *_ = form
    given = [tf.cast(tensor, dtype) for tensor in tensors(*form)]

    def ours(inputs, kernel):
        return strided_conv2d(inputs, kernel, stride=stride)

    theirs = padded_conv(size, stride)
    assert_same_with_gradients(ours, theirs, given, tolerance)


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


@pytest.mark.skipif(not on_tuned_cpu(), reason="the choice is for CPUs")
def test_strided_maps_have_no_padded_copy_on_this_cpu_only():
    for strided in ((16, 3, 2), (32, 7, 2), (16, 3, 3)):
        assert "Pad" not in operations(*strided)
        assert "Pad" in operations(*strided, "bfloat16")
        assert "Pad" in operations(*strided, groups=2)
        with plain_forms():
            assert "Pad" in operations(*strided)
    assert "Pad" in operations(None, 3, 2, gradients=False)
