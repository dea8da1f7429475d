"""From a split to batches, the same on any number of workers."""

import os

import numpy as np
import tensorflow as tf

from encapnet_tf.choices import AUGMENTATIONS
from encapnet_tf.data import augmentation as augmenting
from encapnet_tf.data.splits import Split

# Batches that are made, and that lie ready, at the same time.
_PARALLEL_BATCHES = min(os.cpu_count() or 1, 16)
_PREFETCHED_BATCHES = 4


def batches(
    split: Split,
    batch_size: int,
    *,
    training: bool,
    image_shape: tuple[int, int, int],
    augmentation: str = "none",
    flip: bool = False,
    seed: int = 0,
    epoch: int = 0,
    start_step: int = 0,
    drop_remainder: bool = False,
    num_shards: int = 1,
    shard_index: int = 0,
) -> tf.data.Dataset:
    """Returns one epoch of batches.

    Global batch k of an epoch is a function of `(seed, epoch, k)`: an order
    drawn for the epoch, and for each place in that order the random numbers
    its image is augmented with. A shard gets its contiguous share of every
    global batch; the shards' shares in order are the global batch. (The last
    batch may be smaller than `num_shards`, and some shares empty, unless
    `drop_remainder`.)

    Args:
        split: The examples.
        batch_size: Size of the global batch, a multiple of `num_shards`.
        training: True shuffles and augments; False keeps the stored order
            and the images as they are.
        image_shape: `(H, W, C)` of the result. Images of another size are
            resized; grey ones become RGB if C is 3.
        augmentation: "none", "mild" (resize 32 to 34, random 32 crop),
            "mirrored" (also flips) or "strong" (also flips and colours).
        flip: Whether a mirrored image still shows its class.
        seed: Non-negative integer.
        epoch: Non-negative integer.
        start_step: Batches to leave out, to resume inside an epoch.
        drop_remainder: Leave out a last batch that is not full.
        num_shards: Number of workers that share each batch.
        shard_index: Which of them this is.

    Returns:
        Dataset of float32 images in [0, 1] `(B, H, W, C)` and int32 labels
        `(B,)`.
    """
    _check(batch_size, augmentation, num_shards, shard_index)
    _check_not_negative(seed=seed, epoch=epoch, start_step=start_step)
    _check_channels(split, image_shape)
    if not training:
        augmentation = "none"
    records = split.records((seed, epoch) if training else None)
    if augmentation != "none":
        draws = _draws(split.num_examples, seed, epoch)
        draws = tf.data.Dataset.from_tensor_slices(draws)
        records = tf.data.Dataset.zip(records, draws)
    else:
        zeros = tf.data.Dataset.from_tensors(0.0).repeat()
        records = tf.data.Dataset.zip(records, zeros)
    shape = (*_loaded_size(image_shape, augmentation), image_shape[-1])

    # No Python here depends on tensors: converting it for every epoch would
    # only take time.
    @tf.autograph.experimental.do_not_convert
    def finish(records, draws):
        records, draws = _share((records, draws), num_shards, shard_index)
        images, labels = split.decode(records, shape[:2])
        images = augmenting.augment(
            _to_float(images, shape),
            draws,
            image_shape[:2],
            augmentation=augmentation,
            flip=flip,
        )
        return images, tf.cast(labels, tf.int32)

    grouped = records.skip(start_step * batch_size).batch(
        batch_size, drop_remainder=drop_remainder
    )
    finished = grouped.map(finish, _PARALLEL_BATCHES, deterministic=True)
    return finished.prefetch(_PREFETCHED_BATCHES).with_options(_options())


def _draws(count, seed, epoch):
    """Random numbers for every place in an epoch's order."""
    generator = np.random.default_rng([seed, epoch, 1])
    return generator.random((count, augmenting.NUM_DRAWS), np.float32)


def _loaded_size(image_shape, augmentation):
    if augmentation == "none":
        return image_shape[:2]
    return tuple(augmenting.enlarged(side) for side in image_shape[:2])


def _share(batch, num_shards, shard_index):
    """Cuts one shard's rows out of everything in a global batch."""
    if num_shards == 1:
        return batch
    rows = tf.nest.flatten(batch)[0]
    count = rows.shape[0] or tf.shape(rows)[0]
    first = count * shard_index // num_shards
    last = count * (shard_index + 1) // num_shards
    return tf.nest.map_structure(lambda rows: rows[first:last], batch)


def _to_float(images, shape):
    """Brings uint8 images to `shape` and to [0, 1]."""
    images = tf.image.resize(images, shape[:2]) / 255.0
    if images.shape[-1] == 1 and shape[-1] == 3:
        images = tf.image.grayscale_to_rgb(images)
    return images


def _options():
    options = tf.data.Options()
    options.deterministic = True
    # Its thread may sleep for up to a minute while the iterator's end waits
    # for it (TensorFlow 2.21): at the end of an epoch, on any strategy.
    options.autotune.enabled = False
    # Shards are cut above; TensorFlow must not cut once more.
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.OFF
    )
    return options


def _check(batch_size, augmentation, num_shards, shard_index):
    if augmentation not in AUGMENTATIONS:
        raise ValueError(
            f"`augmentation` must be one of {AUGMENTATIONS}. "
            f"Received: augmentation={augmentation!r}."
        )
    if not 0 <= shard_index < num_shards:
        raise ValueError(
            "`shard_index` must lie between 0 and `num_shards` - 1. Received: "
            f"shard_index={shard_index}, num_shards={num_shards}."
        )
    if batch_size < 1 or batch_size % num_shards:
        raise ValueError(
            "`batch_size` must be a positive multiple of `num_shards`. "
            f"Received: batch_size={batch_size}, num_shards={num_shards}."
        )


def _check_not_negative(**numbers):
    for name, number in numbers.items():
        if number < 0:
            raise ValueError(f"`{name}` must be >= 0. Received: {number}.")


def _check_channels(split, image_shape):
    if image_shape[-1] not in (split.channels, 3):
        raise ValueError(
            f"`image_shape` must have the {split.channels} channels of the "
            f"images, or 3. Received: image_shape={image_shape}."
        )
