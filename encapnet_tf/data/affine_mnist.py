"""MNIST's digits on a larger canvas: placed anywhere, and bent for the test.

The protocol of Sabour et al. (2017, section 5.1): a network that has seen
digits only moved is tested on digits that are also turned, sheared and scaled.
Theirs came from affNIST; these are made here from MNIST, within its ranges.
"""

import numpy as np
import tensorflow as tf

from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.splits import ArraySplit, Split

SIZE = 40  # affNIST's canvas
# affNIST's ranges: degrees, tangents and factors, each drawn evenly.
_ROTATION = 20.0
_SHEAR = 0.2
_SCALE = (0.8, 1.2)
_SEEDS = {"train": 0, "test": 1}
_AT_ONCE = 5_000


def affine_mnist(mnist: Dataset) -> Dataset:
    """Makes the data set.

    Args:
        mnist: MNIST, or other data with grey images of 40×40 at most.

    Returns:
        Training digits placed at random, each once; test digits placed at
        random under a random affine change. Always the same.
    """
    train = _placed(mnist.train, np.random.default_rng(_SEEDS["train"]))
    test = _bent(mnist.test, np.random.default_rng(_SEEDS["test"]))
    return Dataset(
        "affine_mnist", train, test, mnist.class_names, train.image_shape
    )


def _placed(split: Split, rng) -> ArraySplit:
    """Puts every digit somewhere on its canvas, as a whole."""
    images, labels = _arrays(split)
    count, height, width, channels = images.shape
    canvas = np.zeros((count, SIZE, SIZE, channels), np.uint8)
    tops = rng.integers(0, SIZE - height + 1, count)
    lefts = rng.integers(0, SIZE - width + 1, count)
    for place, image, top, left in zip(
        canvas, images, tops, lefts, strict=True
    ):
        place[top : top + height, left : left + width] = image
    return ArraySplit(canvas, labels)


def _bent(split: Split, rng) -> ArraySplit:
    """Turns, shears, scales and moves every digit."""
    images, labels = _arrays(split)
    inverse = np.linalg.inv(_changes(len(images), rng))
    room = [(SIZE - side) / 2 for side in images.shape[1:3]]
    middle = (SIZE - 1) / 2
    moved = np.stack(
        [rng.uniform(-side, side, len(images)) for side in room[::-1]], axis=1
    )
    # Where a pixel of the result comes from: x_in = A⁻¹ (x_out − centre −
    # move) + the centre of the digit.
    centre = np.array([(side - 1) / 2 for side in images.shape[2:0:-1]])
    offset = centre - np.einsum("nij,nj->ni", inverse, middle + moved)
    rows = np.concatenate([inverse, offset[:, :, None]], axis=2)
    transforms = np.concatenate(
        [rows.reshape(-1, 6), np.zeros((len(images), 2))], axis=1
    ).astype(np.float32)
    parts = []
    for first in range(0, len(images), _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        bent = tf.raw_ops.ImageProjectiveTransformV3(
            images=tf.cast(images[part], tf.float32),
            transforms=transforms[part],
            output_shape=[SIZE, SIZE],
            interpolation="BILINEAR",
            fill_mode="CONSTANT",
            fill_value=0.0,
        )
        parts.append(np.rint(bent.numpy()).astype(np.uint8))
    return ArraySplit(np.concatenate(parts), labels)


def _changes(count, rng):
    """Random matrices `(count, 2, 2)`: scale, then shear, then turn."""
    angle = np.deg2rad(rng.uniform(-_ROTATION, _ROTATION, count))
    shear = rng.uniform(-_SHEAR, _SHEAR, count)
    scale = rng.uniform(*_SCALE, (2, count))
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.array([[cosine, -sine], [sine, cosine]])
    one, zero = np.ones(count), np.zeros(count)
    slant = np.array([[one, shear], [zero, one]])
    size = np.array([[scale[0], zero], [zero, scale[1]]])
    return np.einsum("ijn,jkn,kln->nil", turn, slant, size)


def _arrays(split):
    """All images and labels of a split, in its stored order."""
    batches = split.examples((SIZE, SIZE)).batch(_AT_ONCE).as_numpy_iterator()
    images, labels = zip(*batches, strict=True)
    return np.concatenate(images), np.concatenate(labels)
