import time

import numpy as np
import pytest
import tensorflow as tf

from encapnet_tf.data import pipeline
from encapnet_tf.data.splits import ArraySplit

SHAPE = (32, 32, 3)


@pytest.fixture(scope="module")
def split():
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (50, *SHAPE), np.uint8)
    return ArraySplit(images, np.arange(50) % 5)


def collect(split, batch_size=16, **options):
    settings = {"training": True, "image_shape": SHAPE, "flip": True}
    settings |= {"augmentation": "strong", "seed": 7} | options
    return [
        (images.numpy(), labels.numpy())
        for images, labels in pipeline.batches(split, batch_size, **settings)
    ]


def test_batches_have_the_promised_types_shapes_and_range(split):
    for augmentation in ("none", "mild", "strong"):
        found = collect(split, augmentation=augmentation)
        assert [len(labels) for _, labels in found] == [16, 16, 16, 2]
        for images, labels in found:
            assert images.shape == (len(labels), *SHAPE)
            assert images.dtype == np.float32
            assert labels.dtype == np.int32
            assert 0 <= images.min() <= images.max() <= 1


def test_drop_remainder_leaves_the_short_batch_out(split):
    found = pipeline.batches(
        split, 16, training=True, image_shape=SHAPE, drop_remainder=True
    )
    assert [len(labels) for _, labels in found] == [16, 16, 16]
    assert found.element_spec[0].shape.as_list() == [16, *SHAPE]


def test_the_end_of_an_epoch_waits_for_no_thread(split):
    """With tf.data's autotuning one iterator in seven waits as it ends."""
    found = pipeline.batches(split, 16, training=True, image_shape=SHAPE)
    iterators = [iter(found) for _ in range(40)]
    for iterator in iterators:
        next(iterator)
    time.sleep(2)
    while iterators:
        began = time.monotonic()
        list(iterators.pop())
        assert time.monotonic() - began < 5


def test_shards_of_full_batches_have_a_static_shape(split):
    found = pipeline.batches(
        split,
        16,
        training=True,
        augmentation="strong",
        image_shape=SHAPE,
        drop_remainder=True,
        num_shards=2,
        shard_index=1,
    )
    assert found.element_spec[0].shape.as_list() == [8, *SHAPE]
    assert found.element_spec[1].shape.as_list() == [8]


def test_evaluation_gives_the_stored_images_in_order(split):
    found = collect(split, training=False)
    images = np.concatenate([images for images, _ in found])
    stored = [image for image, _ in split.examples((32, 32))]
    np.testing.assert_allclose(images, np.array(stored) / 255.0, atol=1e-6)


@pytest.mark.parametrize("augmentation", ["none", "mild", "strong"])
def test_an_epoch_depends_on_seed_and_epoch_alone(split, augmentation):
    first = collect(split, augmentation=augmentation)
    again = collect(split, augmentation=augmentation)
    for (a, b), (c, d) in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)
    for change in ({"seed": 8}, {"epoch": 1}):
        other = collect(split, augmentation=augmentation, **change)
        assert (other[0][0] != first[0][0]).any()


@pytest.mark.parametrize("augmentation", ["none", "strong"])
@pytest.mark.parametrize("num_shards", [2, 4])
def test_shards_together_are_the_global_batch(split, num_shards, augmentation):
    options = {"augmentation": augmentation}
    whole = collect(split, **options)
    shards = [
        collect(split, num_shards=num_shards, shard_index=index, **options)
        for index in range(num_shards)
    ]
    for step, (images, labels) in enumerate(whole):
        joined = np.concatenate([shard[step][0] for shard in shards])
        np.testing.assert_allclose(joined, images, atol=1e-6)
        joined = np.concatenate([shard[step][1] for shard in shards])
        np.testing.assert_array_equal(joined, labels)


def test_start_step_resumes_inside_an_epoch(split):
    whole = collect(split)
    rest = collect(split, start_step=2)
    assert len(rest) == 2
    for (a, b), (c, d) in zip(whole[2:], rest, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


def test_augmentation_belongs_to_the_place_not_to_the_batch_size(split):
    large = np.concatenate([images for images, _ in collect(split, 50)])
    small = np.concatenate([images for images, _ in collect(split, 7)])
    np.testing.assert_allclose(large, small, atol=1e-6)


def test_mild_is_a_random_crop_of_the_enlarged_image(split):
    found = np.concatenate(
        [images for images, _ in collect(split, augmentation="mild")]
    )
    order = list(split.records((7, 0)).as_numpy_iterator())
    stored = np.array([image for image, _ in split.examples((32, 32))])[order]
    enlarged = tf.image.resize(stored, (34, 34)).numpy() / 255.0
    positions = set()
    for image, whole in zip(found, enlarged, strict=True):
        matches = [
            (y, x)
            for y in range(3)
            for x in range(3)
            if np.allclose(whole[y : y + 32, x : x + 32], image, atol=1e-5)
        ]
        assert len(matches) == 1
        positions |= set(matches)
    assert len(positions) == 9


def test_grey_images_become_rgb_where_asked_and_sizes_are_fitted():
    grey = ArraySplit(
        np.full((4, 28, 28, 1), 51, np.uint8), np.array([0, 1, 0, 1])
    )
    ((images, _),) = collect(grey, 4, augmentation="none")
    np.testing.assert_allclose(images, np.full((4, *SHAPE), 0.2), atol=1e-6)
    ((images, _),) = collect(grey, 4, image_shape=(28, 28, 1))
    assert images.shape == (4, 28, 28, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"augmentation": "wild"}, "Received: augmentation='wild'"),
        ({"shard_index": 2, "num_shards": 2}, "Received: shard_index=2"),
        ({"num_shards": 0}, "Received: shard_index=0, num_shards=0"),
        ({"num_shards": 3}, "Received: batch_size=16, num_shards=3"),
        ({"batch_size": 0}, "Received: batch_size=0"),
        ({"seed": -1}, "`seed` must be >= 0. Received: -1"),
        ({"epoch": -1}, "`epoch` must be >= 0. Received: -1"),
        ({"start_step": -1}, "`start_step` must be >= 0. Received: -1"),
        ({"image_shape": (32, 32, 1)}, r"Received: image_shape=\(32, 32, 1\)"),
    ],
)
def test_wrong_arguments_are_refused(split, options, message):
    with pytest.raises(ValueError, match=message):
        collect(split, **options)
