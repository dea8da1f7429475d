"""Images to check, calibrate and show an exported model with."""

import pathlib
import re
from typing import NamedTuple

import numpy as np
from PIL import Image

from encapnet_tf.data import (
    DataUnavailable,
    Split,
    batches,
    load,
    split_validation,
)
from encapnet_tf.data.splits import IndexedSplit
from export.version.parity import NUM_IMAGES
from trainers.runs.finished import Run
from trainers.scoring import limited

_TEST_IMAGES = 2000
_CALIBRATION_IMAGES = 256
_SHOWN = 10


class Samples(NamedTuple):
    """Images as the network takes them, uint8 `(N, H, W, C)`.

    Attributes:
        images: Test images, or noise where the data cannot be read.
        labels: Their labels, None for noise.
        calibration: Training images, None where the data cannot be read.
        absence: Why the data cannot be read, "" if they can.
        trained_on: Per class, how many images the run was trained on; None
            where they have not been counted.
    """

    images: np.ndarray
    labels: np.ndarray | None
    calibration: np.ndarray | None
    absence: str
    trained_on: np.ndarray | None = None


def read_samples(
    run: Run, dataset: str | None = None, data_dir: str | None = None
) -> Samples:
    """Reads images of the data that a run was trained on.

    Args:
        run: The run.
        dataset: Other data with the same classes; default: the run's own.
        data_dir: Where the data lie; default: where the run found them.
    """
    shape = tuple(run.model.input_shape[1:])
    recipe = run.recipe
    try:
        data = load(
            dataset or recipe.dataset,
            data_dir or (None if dataset else recipe.data_dir),
            image_size=recipe.image_size,
        )
    except (DataUnavailable, ValueError, OSError) as problem:
        if dataset or data_dir:
            raise
        return noise(shape, str(problem))
    if data.class_names != run.class_names:
        raise ValueError(
            "The data must have the classes of the run. Received: "
            f"{data.name} with {', '.join(data.class_names[:10])} …, and a run "
            f"with {', '.join(run.class_names[:10])} …."
        )
    images, labels = _read(data.test, _TEST_IMAGES, shape)
    calibration, _ = _read(data.train, _CALIBRATION_IMAGES, shape)
    counts = None if dataset else _training_counts(run, data)
    return Samples(images, labels, calibration, "", counts)


def noise(shape: tuple[int, int, int], absence: str) -> Samples:
    """Returns images of noise, and why there are no others."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (NUM_IMAGES, *shape), np.uint8)
    return Samples(images, None, None, absence)


def _training_counts(run, data):
    """Counts the classes of what was left when validation had its share."""
    recipe = run.recipe
    train = limited(data.train, recipe.limit_train, recipe.seed_of_subsets)
    if data.validation is None:
        train, _ = split_validation(
            train, recipe.validation_fraction, recipe.seed_of_subsets
        )
    if not isinstance(train, IndexedSplit):
        return None  # streamed: to count them is to read them all
    return np.bincount(train.labels, minlength=data.num_classes)


def _read(split: Split, count, shape):
    split = split.take(min(count, split.num_examples))
    pairs = batches(split, 256, training=False, image_shape=shape)
    images, labels = zip(*pairs.as_numpy_iterator(), strict=True)
    pixels = np.round(np.concatenate(images) * 255).astype(np.uint8)
    return _mixed(pixels, np.concatenate(labels))


def _mixed(images, labels):
    """Puts the classes in turn: folders are stored class by class."""
    order = np.random.default_rng(0).permutation(len(labels))
    return images[order], labels[order]


def write_samples(
    samples: Samples, class_names: tuple[str, ...], folder: pathlib.Path
) -> None:
    """Writes an image each of the first classes, such as `0_cat.png`."""
    if samples.labels is None:
        return
    folder.mkdir(parents=True)
    for label, name in enumerate(class_names[:_SHOWN]):
        places = np.flatnonzero(samples.labels == label)
        if not len(places):
            continue
        image = samples.images[places[0]]
        picture = Image.fromarray(
            image[..., 0] if image.shape[-1] == 1 else image
        )
        word = re.sub(r"[^\w-]+", "_", name)[:40]
        picture.save(folder / f"{label}_{word}.png")
