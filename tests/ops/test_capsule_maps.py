import itertools

import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf import ops
from tests import reference

B, H, W, C, D = 2, 3, 4, 5, 2
MAPS = np.random.default_rng(0).normal(size=(B, H, W, C * D))


def test_capsule_c_owns_the_channels_from_c_times_d():
    capsules = ops.split_capsules(MAPS, C).numpy()
    assert capsules.shape == (B, H, W, C, D)
    for c, d in itertools.product(range(C), range(D)):
        np.testing.assert_array_equal(capsules[..., c, d], MAPS[..., c * D + d])


def test_capsule_i_of_the_row_is_channel_then_row_then_column():
    rows = ops.list_capsules(MAPS, C).numpy()
    assert rows.shape == (B, C * H * W, D)
    for c, h, w in itertools.product(range(C), range(H), range(W)):
        np.testing.assert_array_equal(
            rows[:, c * H * W + h * W + w],
            MAPS[:, h, w, c * D : (c + 1) * D],
        )


def test_merge_undoes_split():
    capsules = ops.split_capsules(MAPS, C)
    np.testing.assert_array_equal(ops.merge_capsules(capsules), MAPS)


def test_arrange_undoes_list():
    rows = ops.list_capsules(MAPS, C)
    np.testing.assert_array_equal(ops.arrange_capsules(rows, H, W), MAPS)


def test_activation_is_relu_then_squash_per_capsule():
    expected = np.concatenate(
        [
            reference.squash(np.maximum(MAPS[..., c * D : c * D + D], 0))
            for c in range(C)
        ],
        axis=-1,
    )
    np.testing.assert_allclose(
        ops.activate_capsules(MAPS, C), expected, atol=1e-12
    )


@pytest.mark.parametrize("size", [(B, None, None), (None, H, W), (None,) * 3])
def test_unknown_sizes_give_the_same_capsules(size):
    @tf.function(input_signature=[tf.TensorSpec((*size, C * D), tf.float64)])
    def forms(maps):
        return (
            ops.list_capsules(maps, C),
            ops.merge_capsules(ops.split_capsules(maps, C)),
            ops.activate_capsules(maps, C),
        )

    rows, maps, activated = forms(MAPS)
    np.testing.assert_array_equal(rows, ops.list_capsules(MAPS, C))
    np.testing.assert_array_equal(maps, MAPS)
    np.testing.assert_array_equal(activated, ops.activate_capsules(MAPS, C))
    symbolic = forms.get_concrete_function().structured_outputs
    assert symbolic[0].shape[-1] == D
    assert symbolic[1].shape[-1] == C * D
    if None not in size[1:]:
        assert symbolic[0].shape[1] == C * H * W


def test_an_empty_batch_stays_empty():
    assert ops.list_capsules(MAPS[:0], C).shape == (0, C * H * W, D)
