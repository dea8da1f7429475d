import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from encapnet_tf.ops import at_least_float32, length, squash
from encapnet_tf.ops.squash import squash_maps
from tests import golden_files, reference

DIRECTION = np.array([0.6, 0.8])


def squash_one(vector):
    return squash_maps(vector, 1)


both_forms = pytest.mark.parametrize("form", [squash, squash_one])


def value_and_gradient(function, x, upstream):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    gradient = tape.gradient(y, x, output_gradients=tf.cast(upstream, y.dtype))
    return [np.asarray(tf.cast(t, tf.float64)) for t in (y, gradient)]


@both_forms
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 2e-5), ("float64", 1e-9)]
)
def test_squash_is_the_authors(dtype, tolerance, form):
    content, _ = golden_files.load("squash_d2")
    v = tf.constant(content["in/v"], dtype)
    np.testing.assert_allclose(form(v), content["out/v"], atol=tolerance)


@both_forms
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [0.0, 1e-20, 1e-9, 0.3, 1.0, 7.0, 1e9, 1e20])
def test_squash_and_its_gradient_are_right_at_every_size(size, dtype, form):
    s = size * DIRECTION
    upstream = np.array([1.3, -0.4])
    value, gradient = value_and_gradient(form, tf.constant(s, dtype), upstream)
    np.testing.assert_allclose(
        value, reference.squash(s), rtol=1e-6, atol=1e-36
    )
    np.testing.assert_allclose(
        gradient,
        reference.squash_gradient(s, upstream),
        rtol=2e-6,
        # Below 1e-16 a float32 vector counts as 0.
        atol=1e-19 if dtype == "float32" else 1e-6 * size,
    )


@both_forms
@pytest.mark.parametrize("size", [0.0, 1e-20, 1.0, 3e4])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_squash_of_narrow_types_is_computed_in_float32(dtype, size, form):
    s = tf.constant(size * DIRECTION, dtype)
    exact = tf.cast(s, tf.float64).numpy()
    upstream = np.array([1.0, -0.5])
    value, gradient = value_and_gradient(form, s, upstream)
    assert form(s).dtype == s.dtype
    precision = 2**-8 if dtype == "bfloat16" else 2**-11
    np.testing.assert_allclose(
        value, reference.squash(exact), rtol=precision, atol=1e-7
    )
    np.testing.assert_allclose(
        gradient,
        reference.squash_gradient(exact, upstream),
        rtol=precision,
        atol=precision * 1e-3,
    )


@both_forms
def test_gradient_of_squash_at_zero_is_zero(form):
    _, gradient = value_and_gradient(form, tf.zeros((2, 3)), np.ones((2, 3)))
    np.testing.assert_array_equal(gradient, 0)


def test_large_bfloat16_keeps_its_direction():
    s = tf.constant(1e20 * DIRECTION, tf.bfloat16)
    np.testing.assert_allclose(tf.cast(squash(s), tf.float32), DIRECTION, 1e-2)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_squash_along_another_axis(axis):
    s = np.random.default_rng(0).normal(size=(3, 4, 5))
    expected = np.moveaxis(reference.squash(np.moveaxis(s, axis, -1)), -1, axis)
    np.testing.assert_allclose(squash(s, axis=axis), expected, atol=1e-12)


# All capsules in one product; eight, four and three of them at a time.
@pytest.mark.parametrize(
    ("num_capsules", "dim"), [(4, 5), (32, 2), (12, 4), (6, 7)]
)
def test_capsules_side_by_side_are_squashed_one_by_one(num_capsules, dim):
    rng = np.random.default_rng(0)
    shape = (2, 3, 3, num_capsules, dim)
    # Neighbours as different as can be: none may reach another.
    sizes = np.resize([0, 1e-9, 1.0, 1e15], num_capsules)[:, None]
    capsules = (rng.normal(size=shape) * sizes).astype("float32")
    upstream = rng.normal(size=shape)

    def side_by_side(values):
        maps = tf.reshape(values, (*shape[:3], num_capsules * dim))
        return tf.reshape(squash_maps(maps, num_capsules), shape)

    for ours, expected in zip(
        value_and_gradient(side_by_side, capsules, upstream),
        value_and_gradient(squash, capsules, upstream),
        strict=True,
    ):
        # Against the capsule's largest entry: others may be sums that cancel.
        largest = np.abs(expected).max(axis=-1, keepdims=True)
        assert np.all(np.abs(ours - expected) <= 1e-5 * largest)


def test_squash_gradient_equals_the_finite_difference():
    rng = np.random.default_rng(0)
    s, upstream = rng.normal(size=(2, 4, 3))
    _, gradient = value_and_gradient(squash, s, upstream)
    numeric = np.zeros_like(s)
    for index in np.ndindex(*s.shape):
        step = np.zeros_like(s)
        step[index] = 1e-6
        change = squash(s + step) - squash(s - step)
        numeric[index] = (change.numpy() * upstream).sum() / 2e-6
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


@hypothesis.settings(deadline=None, max_examples=50)
@hypothesis.given(
    arrays.arrays(
        np.float32,
        (3,),
        elements=st.floats(
            -(2.0**66), 2.0**66, width=32, allow_subnormal=False
        ),
    )
)
def test_squash_shortens_and_keeps_the_direction(s):
    value, gradient = value_and_gradient(squash, s, np.ones(3))
    assert np.isfinite(gradient).all()
    assert np.linalg.norm(value) <= 1 + 1e-6
    assert (value * s >= 0).all()


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e20])
def test_length_and_its_gradient(size):
    s = tf.constant(size * DIRECTION, tf.float32)
    value, gradient = value_and_gradient(length, s, 2.0)
    np.testing.assert_allclose(value, size, rtol=1e-6)
    np.testing.assert_allclose(gradient, 2 * DIRECTION, rtol=1e-6)


def test_gradient_of_length_at_zero_is_zero():
    value, gradient = value_and_gradient(length, tf.zeros((2, 3)), np.ones(2))
    np.testing.assert_array_equal(value, [0, 0])
    np.testing.assert_array_equal(gradient, 0)


def test_length_along_another_axis_and_of_plain_numbers():
    np.testing.assert_allclose(length([[3.0, 5.0], [4.0, 12.0]], 0), [5, 13])


@pytest.mark.parametrize(
    ("given", "wide"),
    [
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
    ],
)
def test_at_least_float32_widens_only_the_narrow(given, wide):
    assert at_least_float32(tf.ones(2, given)).dtype == wide
