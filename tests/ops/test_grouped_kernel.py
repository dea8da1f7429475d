import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.ops import merge_groups
from tests import reference


@pytest.mark.parametrize("into", [1, 2, 3, 6])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 2), (3, 1), (2, 2)])
def test_the_convolution_stays_what_it_was(inputs, outputs, into):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, 4, 6 * inputs))
    kernel = rng.normal(size=(3, 3, inputs, 6 * outputs))
    merged = merge_groups(kernel, 6, into).numpy()
    assert merged.shape == (3, 3, 6 // into * inputs, 6 * outputs)
    np.testing.assert_allclose(
        reference.grouped_conv(x, merged, into, 1),
        reference.grouped_conv(x, kernel, 6, 1),
        atol=1e-12,
    )


def test_gradients_reach_the_kernel_only_where_channels_meet():
    kernel = tf.ones((1, 1, 2, 6))
    with tf.GradientTape() as tape:
        tape.watch(kernel)
        merged = merge_groups(kernel, 3)
        total = tf.reduce_sum(merged * tf.range(36.0, delta=1)[:, None][:6])
    np.testing.assert_array_equal(
        tape.gradient(total, kernel)[0, 0],
        [[0, 0, 2, 2, 4, 4], [1, 1, 3, 3, 5, 5]],
    )
