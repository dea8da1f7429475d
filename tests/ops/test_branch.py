import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.ops import branch_off
from encapnet_tf.ops.branch import LARGEST_SHARE

RNG = np.random.default_rng(0)
HIGHER, LOWER, ABOVE, AT_HIGHER, AT_LOWER = (
    RNG.normal(size=(3, 2, 2, 4)).astype("float32") for _ in range(5)
)


def gradients(above=ABOVE, at_higher=AT_HIGHER, dtype="float32", **options):
    """Gradients at both maps, given those that arrive at the three outputs."""
    higher, lower = (tf.constant(maps, dtype) for maps in (HIGHER, LOWER))
    noted = []
    with tf.GradientTape() as tape:
        tape.watch((higher, lower))
        outputs = branch_off(higher, lower, note=noted.append, **options)
    for output, maps in zip(outputs, (higher, higher, lower), strict=True):
        np.testing.assert_array_equal(output, maps)
    upstream = [tf.constant(g, dtype) for g in (above, at_higher, AT_LOWER)]
    found = tape.gradient(outputs, (higher, lower), output_gradients=upstream)
    (share,) = noted
    return *(g.numpy() for g in found), float(share)


def norm(array):
    return np.linalg.norm(np.asarray(array, np.float64))


def test_without_a_share_the_gradients_add():
    at_higher, at_lower, share = gradients()
    np.testing.assert_allclose(at_higher, ABOVE + AT_HIGHER, rtol=1e-6)
    np.testing.assert_array_equal(at_lower, AT_LOWER)
    assert share == pytest.approx(norm(AT_HIGHER) / norm(ABOVE), rel=1e-5)


@pytest.mark.parametrize("share", [0.1, 2.0])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_branch_gets_its_share_whatever_its_size(share, size):
    at_higher, at_lower, noted = gradients(
        at_higher=size * AT_HIGHER, share=share
    )
    factor = share * norm(ABOVE) / norm(size * AT_HIGHER)
    assert norm(at_higher - ABOVE) == pytest.approx(
        share * norm(ABOVE), rel=1e-4
    )
    np.testing.assert_allclose(
        at_higher, ABOVE + factor * size * AT_HIGHER, rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(at_lower, factor * AT_LOWER, rtol=1e-4)
    assert noted == pytest.approx(share, rel=1e-5)


@pytest.mark.parametrize("share", [None, 0.1])
def test_nothing_divides_by_zero(share):
    nothing = np.zeros_like(ABOVE)
    at_higher, at_lower, noted = gradients(at_higher=nothing, share=share)
    np.testing.assert_array_equal(at_higher, ABOVE)
    assert np.isfinite(at_lower).all()
    assert noted == 0
    at_higher, at_lower, noted = gradients(above=nothing, share=share)
    np.testing.assert_array_equal(at_higher, 0 if share else AT_HIGHER)
    assert noted == pytest.approx(0 if share else LARGEST_SHARE)


def test_a_share_of_nothing_switches_the_branch_off():
    at_higher, at_lower, noted = gradients(share=tf.constant(0.0))
    np.testing.assert_array_equal(at_higher, ABOVE)
    np.testing.assert_array_equal(at_lower, 0)
    assert noted == 0


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_float16_keeps_the_share_under_a_loss_scale(scale):
    at_higher, _, noted = gradients(
        scale * ABOVE, scale * AT_HIGHER, dtype="float16", share=0.1
    )
    assert at_higher.dtype == "float16"
    assert norm(at_higher - scale * ABOVE) == pytest.approx(
        0.1 * scale * norm(ABOVE), rel=0.02
    )
    assert noted == pytest.approx(0.1, rel=1e-3)


def test_an_overflow_is_passed_on_but_not_noted():
    above = np.full_like(ABOVE, np.inf)
    at_higher, _, noted = gradients(above, share=0.1)
    assert not np.isfinite(at_higher).all()
    assert noted == 0


def test_squares_are_summed_over_devices_before_they_are_compared():
    """Another device with four times the squares above, the same below."""
    others = tf.constant([4 * norm(ABOVE) ** 2, 0.0], tf.float32)
    at_higher, _, noted = gradients(share=0.1, total=lambda own: own + others)
    assert norm(at_higher - ABOVE) == pytest.approx(
        0.1 * 5**0.5 * norm(ABOVE), rel=1e-4
    )
    assert noted == pytest.approx(0.1, rel=1e-5)
