import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.data import augmentation, views


def test_views_are_corners_and_centre_of_the_enlarged_image():
    images = np.random.default_rng(0).random((2, 32, 32, 3), np.float32)
    whole = tf.image.resize(images, (34, 34)).numpy()
    found = views.multi_crop(images, 32, mirrored=True)
    assert found.shape == (10, 2, 32, 32, 3)
    corners = [(0, 0), (0, 2), (2, 0), (2, 2), (1, 1)]
    for view, mirrored, (y, x) in zip(
        found[:5], found[5:], corners, strict=True
    ):
        np.testing.assert_array_equal(view, whole[:, y : y + 32, x : x + 32])
        np.testing.assert_array_equal(mirrored, view[:, :, ::-1])
    assert views.multi_crop(images, (32, 32), mirrored=False).shape[0] == 5


def test_views_follow_an_unknown_batch_size():
    @tf.function(input_signature=[tf.TensorSpec([None, 32, 32, 3])])
    def crop(images):
        return views.multi_crop(images, 32, mirrored=True)

    assert crop(tf.zeros((3, 32, 32, 3))).shape == (10, 3, 32, 32, 3)


@pytest.mark.parametrize("size", [(32, 32), (16, 24), (7, 9)])
def test_one_view_is_the_centre_of_the_crops(size):
    images = np.random.default_rng(0).random((2, *size, 3), np.float32)
    one = views.one_view(images, "mild")
    np.testing.assert_array_equal(one, views.multi_crop(images, size, False)[4])
    np.testing.assert_array_equal(one, views.one_view(images, "strong"))
    assert one.shape == images.shape


def test_one_view_is_what_training_shows_at_the_middle_draw():
    images = np.random.default_rng(0).random((2, 32, 32, 3), np.float32)
    draws = np.full((2, augmentation.NUM_DRAWS), 0.5, np.float32)
    shown = augmentation.augment(
        tf.image.resize(images, (34, 34)), draws, (32, 32),
        augmentation="mild", flip=False,
    )  # fmt: skip
    np.testing.assert_array_equal(views.one_view(images, "mild"), shown)


def test_without_crops_in_training_images_are_seen_whole():
    images = np.random.default_rng(0).random((2, 32, 32, 3), np.float32)
    np.testing.assert_array_equal(views.one_view(images, "none"), images)
