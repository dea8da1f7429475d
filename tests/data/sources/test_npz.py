import numpy as np
import pytest

from encapnet_tf.data.sources import npz


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


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_between_0_and_1_become_pixels(save, dtype):
    pixels = np.load(save())["x_train"]
    dataset = npz.load_npz(save(x_train=(pixels / 255).astype(dtype)))
    images = [image for image, _ in dataset.train.examples((8, 8))]
    np.testing.assert_array_equal(images, pixels)


def test_whole_numbers_of_any_type_become_pixels(save):
    pixels = np.load(save())["x_train"]
    dataset = npz.load_npz(save(x_train=pixels.astype(np.int64)))
    images = [image for image, _ in dataset.train.examples((8, 8))]
    np.testing.assert_array_equal(images, pixels)


def test_integers_of_any_value_are_classes_in_their_order(save):
    values = np.array([700, -2, 30, 4], np.int16)
    dataset = npz.load_npz(
        save(y_train=values[np.arange(40) % 4], y_test=values[np.arange(8) % 4])
    )
    assert dataset.class_names == ("-2", "4", "30", "700")
    assert dataset.train.labels[:4].tolist() == [3, 0, 2, 1]
    assert dataset.test.labels[:4].tolist() == [3, 0, 2, 1]


def test_labels_from_1_take_the_names_in_order(save):
    dataset = npz.load_npz(
        save(
            y_train=np.arange(40) % 4 + 1,
            y_test=np.arange(8) % 4 + 1,
            class_names=["ant", "bee", "cat", "dog"],
        )
    )
    assert dataset.class_names == ("ant", "bee", "cat", "dog")
    assert dataset.test.labels[:4].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["U3", "S3"])
def test_words_are_classes_by_name(save, kind):
    words = np.array(["dog", "ant", "cat", "bee"], kind)
    labels = {
        "y_train": words[np.arange(40) % 4],
        "y_test": words[np.arange(8) % 4],
    }
    dataset = npz.load_npz(save(**labels))
    assert dataset.class_names == ("ant", "bee", "cat", "dog")
    assert dataset.test.labels[:4].tolist() == [3, 0, 2, 1]
    given = npz.load_npz(save(**labels, class_names=words))
    assert given.class_names == ("dog", "ant", "cat", "bee")
    assert given.test.labels[:4].tolist() == [0, 1, 2, 3]


def test_a_validation_part_is_what_is_validated_on(save):
    pixels = np.full((4, 8, 8, 3), 9, np.uint8)
    dataset = npz.load_npz(save(x_val=pixels, y_val=np.arange(4)))
    assert dataset.train.num_examples == 40
    assert dataset.validation.labels.tolist() == [0, 1, 2, 3]
    assert npz.load_npz(save()).validation is None


def test_fitting_is_told_only_where_images_change(save):
    assert npz.load_npz(save()).fitting == ""
    dataset = npz.load_npz(save(), size=(6, 5))
    assert dataset.image_shape == (6, 5, 3)
    assert "of 8x8 (height x width) pixels are fitted to 6x5" in dataset.fitting


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
    dataset = npz.load_npz(save(), size=(5, 5))
    assert dataset.image_shape == (5, 5, 3)
    assert next(iter(dataset.test.examples((5, 5))))[0].shape == (5, 5, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"x_train": np.full((40, 8, 8, 3), 200.0)},
            r"floats in \[0, 1\]. Received: float64 from 200.0 to 200.0",
        ),
        ({"x_train": np.full((40, 8, 8, 3), 256)}, "int64 from 256 to 256"),
        ({"x_train": np.full((40, 8, 8, 3), np.nan)}, "float64 from nan"),
        ({"x_train": np.zeros((40, 8, 8, 4), np.uint8)}, r"\(40, 8, 8, 4\)"),
        ({"x_train": np.zeros((40, 8), np.uint8)}, r"Received: \(40, 8\)"),
        ({"x_train": np.zeros((0, 8, 8, 3), np.uint8)}, "must hold images"),
        ({"y_train": np.zeros(40)}, "Received: float64.*astype"),
        ({"y_train": np.eye(40, dtype=int)}, "argmax"),
        ({"y_train": np.arange(39)}, "Received: 40 images and 39 labels"),
        ({"y_train": np.arange(40) % 4 - 1}, "classes -1, 0, 1, 2 only.*: 3"),
        ({"y_test": np.arange(8)}, "classes 0, 1, 2, 3 only.*: 4, 5, 6, 7"),
        ({"y_train": np.arange(40) % 2 * 3}, "0, 3 only. Received: 1, 2 too"),
        ({"y_test": np.array(list("abcdabcd"))}, "0, 1, 2, 3 only. .*a, b"),
        ({"y_train": np.zeros(40, int)}, "y_test|only class 0"),
        ({"y_train": None}, "Received: keys .* without y_train"),
        ({"x_test": None}, "without x_test"),
        ({"y_val": np.arange(8) % 4}, "without x_val"),
        ({"class_names": list("abcde")}, "Received: none for 4"),
        ({"x_test": np.zeros((8, 9, 9, 3), np.uint8)}, "same shape. Received"),
        ({"x_train": np.array([None] * 40)}, "Received: .*Python objects"),
        ({"class_names": ["a", "b"]}, "classes 0, 1 only. Received: 2, 3"),
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
