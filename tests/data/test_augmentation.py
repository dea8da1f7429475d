import colorsys

import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.data import augmentation

MIDDLE = 0.5  # the draw that leaves a factor at 1 and a shift at 0


@pytest.fixture
def images():
    generator = np.random.default_rng(0)
    return generator.random((6, 34, 34, 3), np.float32)


@pytest.fixture
def draws():
    return np.random.default_rng(1).random((6, 7), np.float32)


def test_enlarged_sizes_are_the_papers():
    assert [augmentation.enlarged(s) for s in (32, 128, 224)] == [34, 156, 256]
    assert augmentation.enlarged(28) == 30
    assert augmentation.enlarged(4) == 5


def test_none_changes_nothing(images, draws):
    kept = augmentation.augment(
        images, draws, (34, 34), augmentation="none", flip=True
    )
    np.testing.assert_array_equal(kept, images)


def test_crops_are_the_slices_their_draws_name(images):
    rows = np.array([0.0, 0.5, 0.999999, 0.34, 0.66, 0.1], np.float32)
    columns = rows[::-1].copy()
    crops = augmentation.random_crop(images, rows, columns, (32, 32))
    for image, crop, row, column in zip(
        images, crops, rows, columns, strict=True
    ):
        y, x = int(row * 3), int(column * 3)
        np.testing.assert_array_equal(crop, image[y : y + 32, x : x + 32])


def test_every_position_is_drawn_and_none_beyond():
    images = np.tile(np.arange(5.0, dtype=np.float32), (1000, 5, 1))[..., None]
    draws = np.random.default_rng(0).random((2, 1000), np.float32)
    draws[:, 0] = np.nextafter(np.float32(1), np.float32(0))
    crops = augmentation.random_crop(images, *draws, (3, 3))
    counts = np.bincount(np.asarray(crops)[:, 0, 0, 0].astype(int))
    assert len(counts) == 3
    assert counts.min() > 250


def test_mirrored_crops_are_reversed_along_the_width(images):
    zeros = np.zeros(6, np.float32)
    mirrored = np.array([True, False] * 3)
    crops = augmentation.random_crop(images, zeros, zeros, (32, 32), mirrored)
    np.testing.assert_array_equal(crops[0], images[0, :32, :32][:, ::-1])
    np.testing.assert_array_equal(crops[1], images[1, :32, :32])


def test_strong_never_mirrors_without_flip(images, draws):
    draws[:, 3:] = MIDDLE
    strong = augmentation.augment(
        images, draws, (32, 32), augmentation="strong", flip=False
    )
    mild = augmentation.augment(
        images, draws, (32, 32), augmentation="mild", flip=True
    )
    np.testing.assert_allclose(strong, mild, atol=1e-5)


def test_mirrored_is_mild_with_some_crops_reversed(images, draws):
    draws[:, 2] = [0.1, 0.9] * 3
    mild, mirrored = (
        augmentation.augment(
            images, draws, (32, 32), augmentation=name, flip=True
        )
        for name in ("mild", "mirrored")
    )
    np.testing.assert_array_equal(mirrored[1::2], mild[1::2])
    np.testing.assert_array_equal(mirrored[::2], mild[::2, :, ::-1])


def test_middle_draws_leave_colours_alone(images):
    draws = np.full((6, 4), MIDDLE, np.float32)
    np.testing.assert_allclose(
        augmentation.jitter_colours(images, draws), images, atol=1e-5
    )


@pytest.mark.parametrize(
    ("column", "adjust"),
    [
        (0, lambda image, factor: image * factor),
        (
            1,
            lambda image, factor: (
                factor * image
                + (1 - factor) * tf.image.rgb_to_grayscale(image).numpy().mean()
            ),
        ),
        (
            2,
            lambda image, factor: (
                factor * image
                + (1 - factor) * tf.image.rgb_to_grayscale(image).numpy()
            ),
        ),
    ],
)
def test_each_factor_acts_as_its_definition(images, column, adjust):
    images = 0.25 + 0.5 * images
    draws = np.full((6, 4), MIDDLE, np.float32)
    draws[:, column] = [0.0, 0.2, 0.4, 0.6, 0.8, 0.99]
    jittered = augmentation.jitter_colours(images, draws)
    for image, draw, got in zip(images, draws, jittered, strict=True):
        expected = adjust(image, 0.8 + 0.4 * draw[column])
        np.testing.assert_allclose(got, expected, atol=2e-4)


def test_hue_turns_like_hsv_on_a_muted_colour():
    colour = np.array(colorsys.hsv_to_rgb(0.1, 0.2, 0.6), np.float32)
    images = np.broadcast_to(colour, (2, 4, 4, 3))
    draws = np.full((2, 4), MIDDLE, np.float32)
    draws[:, 3] = [0.0, 1.0]
    turned = np.asarray(augmentation.jitter_colours(images, draws))[:, 0, 0]
    hues = [colorsys.rgb_to_hsv(*pixel.astype(float))[0] for pixel in turned]
    shifts = [(hue - 0.1 + 0.5) % 1 - 0.5 for hue in hues]
    np.testing.assert_allclose(np.abs(shifts), 0.2, atol=0.06)
    assert shifts[0] * shifts[1] < 0


def test_values_stay_between_0_and_1(images):
    draws = np.random.default_rng(0).integers(0, 2, (6, 4)).astype(np.float32)
    jittered = np.asarray(augmentation.jitter_colours(images, draws))
    assert jittered.min() >= 0
    assert jittered.max() <= 1


def test_grey_images_change_in_brightness_and_contrast_only(images):
    grey = images[..., :1] * 0.5
    draws = np.full((6, 4), MIDDLE, np.float32)
    draws[:, 2:] = 0.9
    np.testing.assert_allclose(
        augmentation.jitter_colours(grey, draws), grey, atol=1e-6
    )
    draws[:, 0] = 1.0
    np.testing.assert_allclose(
        augmentation.jitter_colours(grey, draws), grey * 1.2, atol=1e-5
    )
