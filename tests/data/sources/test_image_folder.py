import warnings

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from encapnet_tf.data.sources import image_folder


@pytest.fixture
def make(tmp_path):
    """Writes `count` flat images of brightness `value` per class."""

    def write(classes=None, under=".", count=6, suffix="png"):
        classes = {"cat": 40, "dog": 200} if classes is None else classes
        for name, value in classes.items():
            folder = tmp_path / under / name
            folder.mkdir(parents=True)
            for index in range(count):
                pixels = np.full((20, 30 + index), value, np.uint8)
                Image.fromarray(pixels).save(folder / f"{index}.{suffix}")
        return tmp_path

    return write


def test_classes_come_from_sub_folders(make):
    dataset = image_folder.load_folder(str(make()))
    assert dataset.class_names == ("cat", "dog")
    assert dataset.image_shape == (32, 32, 3)
    assert not dataset.flip
    assert dataset.train.num_examples + dataset.test.num_examples == 12
    assert sorted(dataset.test.labels) == [0, 1]
    for image, label in dataset.train.examples((32, 32)):
        assert set(np.unique(image)) == {40 if label == 0 else 200}


def test_train_and_test_folders_are_used(make):
    make(under="train")
    root = make(under="test", count=2)
    dataset = image_folder.load_folder(str(root), size=(16, 16))
    assert dataset.train.num_examples == 12
    assert dataset.test.num_examples == 4
    assert dataset.image_shape == (16, 16, 3)


def test_train_may_be_a_class_of_trains(make):
    root = make({"train": 10, "test": 20})
    assert image_folder.load_folder(str(root)).class_names == ("test", "train")


def test_digit_names_sort_as_numbers(make):
    root = make({"10": 1, "2": 2, "1": 3})
    dataset = image_folder.load_folder(str(root))
    assert dataset.class_names == ("1", "2", "10")


def test_a_damaged_file_is_left_out_with_one_warning_naming_it(make):
    root = make()
    (root / "cat" / "3.png").write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="cat/3.png") as caught:
        dataset = image_folder.load_folder(str(root))
    assert len(caught) == 1
    assert dataset.train.num_examples + dataset.test.num_examples == 11


def test_mostly_damaged_files_are_refused(make):
    root = make()
    for index in range(6):
        (root / "cat" / f"{index}.png").write_bytes(b"damaged")
    (root / "dog" / "0.png").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="Received: 7 of 12 files .*2 more"):
        image_folder.load_folder(str(root))


def test_a_class_with_only_damaged_files_is_refused(make):
    root = make()
    for index in range(6):
        (root / "cat" / f"{index}.png").write_bytes(b"damaged")
    with (
        pytest.warns(UserWarning, match="6 of 12"),
        pytest.raises(ValueError, match="Received: all of .*cat damaged"),
    ):
        image_folder.load_folder(str(root))


def test_an_empty_class_folder_is_refused_by_name(make):
    root = make()
    (root / "emu").mkdir()
    (root / "emu" / "notes.txt").write_text("no image")
    with pytest.raises(ValueError, match="Received: .*emu without any"):
        image_folder.load_folder(str(root))


def test_one_class_is_refused_by_name(make):
    with pytest.raises(ValueError, match="two classes.*only 'cat'"):
        image_folder.load_folder(str(make({"cat": 1})))


def test_a_folder_without_sub_folders_or_no_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Received: .*no sub-folders"):
        image_folder.load_folder(str(tmp_path))
    with pytest.raises(ValueError, match="Received: .*not a folder"):
        image_folder.load_folder(str(tmp_path / "nowhere"))


def test_a_class_that_training_lacks_is_refused_by_name(make):
    make(under="train")
    root = make({"cat": 1, "emu": 2}, under="test")
    with pytest.raises(ValueError, match="test may have.*Received also: emu"):
        image_folder.load_folder(str(root))


def test_a_class_may_lack_test_images(make):
    make(under="train")
    root = make({"cat": 1}, under="test")
    (root / "test" / "dog").mkdir()
    dataset = image_folder.load_folder(str(root))
    assert dataset.test.labels.tolist() == [0] * 6
    for file in (root / "test" / "cat").iterdir():
        file.unlink()
    with pytest.raises(ValueError, match="Received: .*test, without any image"):
        image_folder.load_folder(str(root))


def test_a_val_folder_is_what_is_validated_on(make):
    make(under="train")
    make(under="test", count=2)
    root = make(under="val", count=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = image_folder.load_folder(str(root))
    assert dataset.train.num_examples == 12
    assert dataset.validation.labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_images_outside_the_class_folders_are_counted_and_named(make):
    make(under="train")
    root = make(under="test")
    for name in ("b.png", "train/a.jpg", "notes.txt"):
        (root / name).write_bytes(b"")
    with pytest.warns(UserWarning, match="left out: 2, b.png, train/a.jpg."):
        image_folder.load_folder(str(root))


def test_fitting_is_told_with_the_sizes_that_came(make):
    found = image_folder.load_folder(str(make())).fitting
    assert found.startswith(
        "Images from 20x30 to 20x35 (height x width) pixels are fitted to 32x32"
    )
    assert "--image_size=96x64" in found


@pytest.mark.parametrize("limit", [0, 2**30])
def test_height_and_width_may_differ(make, monkeypatch, limit):
    monkeypatch.setattr(image_folder, "_MEMORY_LIMIT", limit)
    dataset = image_folder.load_folder(str(make()), size=(24, 16))
    assert dataset.image_shape == (24, 16, 3)
    image, _ = next(iter(dataset.train.examples((24, 16))))
    assert image.shape == (24, 16, 3)


@pytest.mark.parametrize("limit", [0, 2**30])
def test_examples_are_called_by_their_files(make, monkeypatch, limit):
    monkeypatch.setattr(image_folder, "_MEMORY_LIMIT", limit)
    root = make({"cat": 40, "dog": 200})
    dataset = image_folder.load_folder(str(root))
    for split in (dataset.train, dataset.test):
        for place, label in enumerate(split.labels):
            name = split.name_of(place)
            assert name.startswith("cat/" if label == 0 else "dog/")
            assert (root / name).exists()


def test_a_large_folder_is_read_as_needed_with_the_same_pixels(
    make, monkeypatch
):
    root = make()
    held = image_folder.load_folder(str(root))
    monkeypatch.setattr(image_folder, "_MEMORY_LIMIT", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = image_folder.load_folder(str(root))
    pairs = zip(
        held.train.examples((32, 32)),
        read.train.examples((32, 32)),
        strict=True,
    )
    for (image, label), (image_read, label_read) in pairs:
        np.testing.assert_array_equal(image, image_read)
        assert label == label_read


def test_a_large_folder_is_decoded_at_the_size_asked_for(make, monkeypatch):
    monkeypatch.setattr(image_folder, "_MEMORY_LIMIT", 0)
    dataset = image_folder.load_folder(str(make()))
    image, _ = next(iter(dataset.train.examples((34, 34))))
    assert image.shape == (34, 34, 3)


def test_other_folders_beside_train_are_named_as_unused(make):
    make(under="more", count=1)
    root = make(under="train")
    with pytest.warns(UserWarning, match="Received also: more"):
        dataset = image_folder.load_folder(str(root))
    assert dataset.class_names == ("cat", "dog")


def test_hidden_files_are_no_images(make):
    root = make()
    (root / "cat" / "._0.png").write_bytes(b"left by a file manager")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        image_folder.load_folder(str(root))


def test_a_damaged_file_in_a_large_folder_is_named_when_it_is_read(
    make, monkeypatch
):
    root = make()
    path = root / "cat" / "0.png"
    noise = np.random.default_rng(0).integers(0, 256, (40, 40), np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:800])
    monkeypatch.setattr(image_folder, "_MEMORY_LIMIT", 0)
    dataset = image_folder.load_folder(str(root))
    train, test = (
        split.examples((32, 32)) for split in (dataset.train, dataset.test)
    )
    with pytest.raises(tf.errors.OpError, match="cat/0.png"):
        list(train.concatenate(test))
