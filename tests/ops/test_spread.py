import numpy as np
import pytest

from encapnet_tf.ops import paired_error, spread, standardize, zero_share

VECTORS = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")


def test_spread_is_the_distance_from_the_mean():
    centre = VECTORS.mean(axis=0)
    squares = [((row - centre) ** 2).sum() for row in VECTORS]
    expected = np.mean(squares) ** 0.5
    assert spread(VECTORS, "l2").numpy() == pytest.approx(expected, rel=1e-5)


def test_directions_do_not_know_lengths():
    sizes = np.array([[1e-6], [1], [10], [3], [1e6], [2]])
    units = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    expected = spread(units, "l2").numpy()
    found = spread((sizes * VECTORS).astype("float32")).numpy()
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("cost", ["cosine", "l2"])
def test_samples_that_look_alike_have_no_spread(cost):
    alike = np.repeat(VECTORS[:1], 6, axis=0)
    assert spread(alike, cost).numpy() == pytest.approx(0, abs=1e-6)
    assert spread(0 * VECTORS, cost).numpy() == 0


def test_vectors_of_zeros_are_counted():
    some = np.where(np.arange(6)[:, None] < 2, 0, VECTORS)
    assert zero_share(some).numpy() == pytest.approx(2 / 6)
    assert zero_share(VECTORS).numpy() == 0


def test_standardized_entries_have_mean_0_and_variance_1():
    found = standardize(100 + 7 * VECTORS).numpy()
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(found.var(axis=0), 1, rtol=1e-3)
    np.testing.assert_array_equal(standardize(VECTORS[:1]), 0 * VECTORS[:1])


def test_paired_error_equals_a_loop_and_does_not_know_sizes():
    recovered = np.roll(VECTORS, 1, axis=1)
    centre = VECTORS.mean(axis=0)
    error = sum(((r - t) ** 2).sum() for r, t in
                zip(recovered, VECTORS, strict=True))  # fmt: skip
    variance = sum(((t - centre) ** 2).sum() for t in VECTORS)
    for size in (1e-3, 1, 1e3):
        found = paired_error(size * VECTORS, size * recovered)
        assert found.numpy() == pytest.approx(error / variance, rel=1e-5)


def test_paired_error_of_the_mean_and_of_targets_alike_is_one():
    mean = np.broadcast_to(VECTORS.mean(axis=0), VECTORS.shape)
    assert paired_error(VECTORS, mean).numpy() == pytest.approx(1, rel=1e-5)
    alike = np.zeros_like(VECTORS)
    assert paired_error(alike, VECTORS).numpy() == 1


def test_paired_error_minds_who_belongs_to_whom():
    swapped = VECTORS[::-1]
    assert paired_error(VECTORS, VECTORS).numpy() == 0
    assert paired_error(VECTORS, swapped).numpy() > 0.5
