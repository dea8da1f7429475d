import os

import numpy as np
import pytest

from encapnet_tf.data.house_numbers import cache, glyphs, rendering


@pytest.fixture
def small(tmp_path):
    def load(cache_dir=tmp_path, **kwargs):
        sizes = {"num_train": 40, "num_test": 20, **kwargs}
        return cache.load_house_numbers(cache_dir, **sizes)

    return load


def test_arrays_have_svhns_shapes_and_types(small):
    arrays = small()
    assert arrays["x_train"].shape == (40, 32, 32, 3)
    assert arrays["x_test"].shape == (20, 32, 32, 3)
    assert arrays["y_train"].shape == (40,)
    assert arrays["x_train"].dtype == arrays["y_test"].dtype == np.uint8
    assert arrays["y_train"].max() <= 9


def test_a_seed_gives_the_same_images_and_another_seed_others(small, tmp_path):
    first = small(tmp_path / "a")
    again = small(tmp_path / "b")
    other = small(tmp_path / "c", seed=1)
    np.testing.assert_array_equal(first["x_train"], again["x_train"])
    assert (first["x_train"] != other["x_train"]).any()
    assert (first["x_train"][:20] != first["x_test"]).any()


def test_images_do_not_depend_on_the_number_of_threads(
    small, tmp_path, monkeypatch
):
    monkeypatch.setattr(cache, "_CHUNK", 8)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    one = small(tmp_path / "one")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    four = small(tmp_path / "four")
    for key in one:
        np.testing.assert_array_equal(one[key], four[key])


def test_the_cache_is_read_back_without_rendering(small, monkeypatch):
    first = small()
    monkeypatch.setattr(cache, "_render_all", None)
    again = small()
    for key in first:
        np.testing.assert_array_equal(first[key], again[key])


@pytest.mark.parametrize("damage", ["cut short", "other bytes", "empty"])
def test_a_damaged_cache_file_is_rendered_again(small, tmp_path, damage):
    first = small()
    (path,) = tmp_path.glob("*.npz")
    stored = path.read_bytes()
    broken = {
        "cut short": stored[: len(stored) // 2],
        "other bytes": b"x" * 1000,
        "empty": b"",
    }[damage]
    path.write_bytes(broken)
    again = small()
    np.testing.assert_array_equal(first["x_train"], again["x_train"])
    assert path.stat().st_size == len(stored)
    assert list(tmp_path.glob("*.part")) == []


def test_a_cache_folder_that_cannot_be_written_costs_only_the_cache(
    small, tmp_path
):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert len(small(blocked)["x_train"]) == 40


def test_the_environment_names_the_cache_folder(small, tmp_path, monkeypatch):
    monkeypatch.setenv("ENCAPNET_CACHE", str(tmp_path / "elsewhere"))
    small(None)
    assert len(list((tmp_path / "elsewhere").glob("*.npz"))) == 1


def test_no_images_are_refused(small):
    with pytest.raises(ValueError, match="Received: num_train=0"):
        small(num_train=0)


def test_every_digit_of_every_typeface_is_drawn():
    fields, widths = glyphs.digit_fields()
    filled = (fields > 0).mean(axis=(-2, -1))
    assert fields.shape[1:] == (10, glyphs.CELL, glyphs.CELL)
    assert filled.min() > 0.02
    assert filled.max() < 0.5
    assert 0.3 < widths.min() < widths.max() < 1.0


def test_distances_are_euclidean_up_to_the_grid():
    target = np.zeros((1, 16, 16), bool)
    target[0, 4, 6] = True
    unit = glyphs._OVERSAMPLING * glyphs.GLYPH_HEIGHT
    rows, columns = np.mgrid[0:16:2, 0:16:2]
    expected = np.hypot(rows - 4, columns - 6)
    np.testing.assert_allclose(glyphs._distance(target)[0] * unit, expected)


def test_crops_use_the_range_of_grey_values_and_differ_from_each_other():
    images, labels = rendering.render(np.random.default_rng(0), 100)
    assert len(np.unique(images.reshape(100, -1), axis=0)) == 100
    assert images.min() < 20
    assert images.max() > 235
    assert set(labels) == set(range(10))
    spread = images.astype(float).std(axis=(1, 2)).max(axis=-1)
    assert spread.min() > 4


@pytest.mark.slow
def test_a_linear_model_on_pixels_cannot_read_them():
    images, labels = rendering.render(np.random.default_rng(0), 2500)
    pixels = images.reshape(2500, -1) / 255.0 - 0.5
    train, test = pixels[:2000], pixels[2000:]
    targets = np.eye(10)[labels[:2000]]
    dual = np.linalg.solve(train @ train.T + 100.0 * np.eye(2000), targets)
    guesses = (test @ (train.T @ dual)).argmax(axis=-1)
    assert (guesses != labels[2000:]).mean() > 0.4
