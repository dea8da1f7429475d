import numpy as np
import pytest

from encapnet_tf.data.dataset import split_validation
from encapnet_tf.data.splits import ArraySplit


@pytest.fixture
def split():
    images = np.arange(50, dtype=np.uint8)[:, None, None, None]
    return ArraySplit(np.broadcast_to(images, (50, 4, 4, 3)), np.arange(50) % 5)


def first_pixels(split, shuffle=None):
    return [int(i[0, 0, 0]) for i, _ in split.examples((4, 4), shuffle)]


def test_stored_order_is_kept_without_shuffling(split):
    assert first_pixels(split) == list(range(50))


def test_a_shuffle_is_a_permutation_of_seed_and_epoch(split):
    orders = [first_pixels(split, key) for key in [(0, 0), (0, 1), (1, 0)]]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert first_pixels(split, (0, 0)) == orders[0]


def test_images_stay_with_their_labels_under_shuffling(split):
    for image, label in split.examples((4, 4), (3, 1)):
        assert int(image[0, 0, 0]) % 5 == int(label)


def test_take_is_stratified_and_nested_subsets_work(split):
    part = split.take(20, seed=1)
    assert np.bincount(part.labels).tolist() == [4] * 5
    again = part.take(5)
    assert np.bincount(again.labels).tolist() == [1] * 5
    assert set(first_pixels(again)) <= set(first_pixels(part))


@pytest.mark.parametrize("count", [0, 51, -1])
def test_take_refuses_more_than_there_are_or_nothing(split, count):
    with pytest.raises(
        ValueError, match=f"the 50 there are. Received: {count}"
    ):
        split.take(count)


def test_validation_and_training_parts_are_disjoint_and_complete(split):
    train, validation = split_validation(split, 0.2, seed=3)
    assert np.bincount(validation.labels).tolist() == [2] * 5
    assert sorted(first_pixels(train) + first_pixels(validation)) == list(
        range(50)
    )
    _, again = split_validation(split, 0.2, seed=3)
    assert first_pixels(again) == first_pixels(validation)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 2.0])
def test_validation_fraction_must_lie_between_0_and_1(split, fraction):
    with pytest.raises(ValueError, match=f"Received: fraction={fraction}"):
        split_validation(split, fraction)


def test_validation_of_nothing_is_refused(split):
    with pytest.raises(ValueError, match="Received: fraction=0.001 of 50"):
        split_validation(split, 0.001)
