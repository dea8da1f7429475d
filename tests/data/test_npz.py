import numpy as np
import pytest

from encapnet_tf.data import npz


@pytest.fixture
def save(tmp_path):
    def write(**changes):
        generator = np.random.default_rng(0)
        arrays = {
            "x_train": generator.integers(0, 256, (40, 8, 8, 3), np.uint8),
            "y_train": np.arange(40) % 4,
            "x_test": generator.integers(0, 256, (8, 8, 8, 3), np.uint8),
            "y_test": np.arange(8) % 4,
            **changes,
        }
        path = tmp_path / "own.npz"
        np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
        return str(path)

    return write


def test_images_and_labels_arrive_unchanged(save):
    path = save()
    stored = np.load(path)
    dataset = npz.load_npz(path)
    images = [image for image, _ in dataset.train.examples((8, 8))]
    np.testing.assert_array_equal(images, stored["x_train"])
    np.testing.assert_array_equal(dataset.test.labels, stored["y_test"])
    assert dataset.image_shape == (8, 8, 3)
    assert dataset.class_names == ("0", "1", "2", "3")
    assert not dataset.flip


def test_class_names_in_the_file_are_used(save):
    dataset = npz.load_npz(save(class_names=["ant", "bee", "cat", "dog"]))
    assert dataset.class_names == ("ant", "bee", "cat", "dog")
    assert not dataset.flip


def test_grey_images_get_a_channel_axis(save):
    grey = np.zeros((40, 9, 7), np.uint8)
    dataset = npz.load_npz(save(x_train=grey, x_test=None, y_test=None))
    assert dataset.image_shape == (9, 7, 1)


def test_column_labels_are_accepted(save):
    dataset = npz.load_npz(save(y_train=(np.arange(40) % 4)[:, None]))
    assert dataset.train.labels.shape == (40,)


def test_without_a_test_part_a_fixed_stratified_share_is_split_off(save):
    path = save(x_test=None, y_test=None)
    first, again = npz.load_npz(path), npz.load_npz(path)
    assert first.test.num_examples == 6
    assert first.train.num_examples == 34
    assert set(np.bincount(first.test.labels)) == {1, 2}
    np.testing.assert_array_equal(first.test._indices, again.test._indices)
    together = np.union1d(first.train._indices, first.test._indices)
    assert len(together) == 40


def test_image_size_fits_every_image(save):
    dataset = npz.load_npz(save(), image_size=5)
    assert dataset.image_shape == (5, 5, 3)
    assert next(iter(dataset.test.examples((5, 5))))[0].shape == (5, 5, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": np.zeros((40, 8, 8, 3))}, "x_train must be uint8.*float6"),
        ({"x_train": np.zeros((40, 8, 8, 4), np.uint8)}, r"\(40, 8, 8, 4\)"),
        ({"x_train": np.zeros((40, 8), np.uint8)}, r"Received: \(40, 8\)"),
        ({"x_train": np.zeros((0, 8, 8, 3), np.uint8)}, "must hold images"),
        ({"y_train": np.zeros(40)}, "integer labels.*Received: float64"),
        ({"y_train": np.eye(40, dtype=int)}, "argmax"),
        ({"y_train": np.arange(39)}, "Received: 40 images and 39 labels"),
        ({"y_train": np.arange(40) % 4 - 1}, "labels from -1 to 2"),
        ({"y_test": np.arange(8)}, "y_test must lie between 0 and 3.*0 to 7"),
        ({"y_train": np.arange(40) % 2 * 3}, r"none for \[1, 2\]"),
        ({"y_train": np.arange(40) % 2 * 10**9}, "Received: none for"),
        ({"y_train": np.zeros(40, int)}, "y_test|only class 0"),
        ({"y_train": None}, "Received: keys .* without y_train"),
        ({"x_test": None}, "without x_test"),
        ({"x_test": np.zeros((8, 9, 9, 3), np.uint8)}, "same shape. Received"),
        ({"x_train": np.array([None] * 40)}, "Received: .*Python objects"),
        ({"class_names": ["a", "b"]}, "between 0 and 1. Received"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(save, changes, message):
    with pytest.raises(ValueError, match=message):
        npz.load_npz(save(**changes))


def test_one_class_is_refused_by_name(save):
    path = save(y_train=np.zeros(40, int), x_test=None, y_test=None)
    with pytest.raises(ValueError, match="two classes.*Received: only class 0"):
        npz.load_npz(path)


def test_one_image_per_class_cannot_give_a_test_part(save):
    path = save(y_train=np.arange(40), x_test=None, y_test=None)
    with pytest.raises(ValueError, match="Received: 40 images, one of each"):
        npz.load_npz(path)


def test_a_file_that_is_no_npz_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(ValueError, match="Received: .*not a file"):
        npz.load_npz(str(path))
    path.write_bytes(b"hello")
    with pytest.raises(ValueError, match="plain arrays is expected. Received"):
        npz.load_npz(str(path))
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="Received: .*a single array"):
        npz.load_npz(str(path))
