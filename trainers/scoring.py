"""Scores and errors of a model on a split, and where it goes wrong."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.data import Split, batches, multi_crop, one_view

_BATCH = 256
# With this many classes the top-5 error is worth reporting.
TOP5_CLASSES = 20


class ClassErrors(NamedTuple):
    """How one class fares.

    Attributes:
        name: The class.
        images: How many images show it.
        errors: How many of these are taken for something else.
        error: The share of these, None without images.
        low: Lower end of its 95% interval.
        high: Upper end.
        recall: The share of its images that is found, None without images.
        precision: The share of right ones among the images that are taken for
            it, None if none is.
        taken_for: What they are most often taken for, "" without errors.
        times: How often that is.
    """

    name: str
    images: int
    errors: int
    error: float | None
    low: float | None
    high: float | None
    recall: float | None
    precision: float | None
    taken_for: str
    times: int


def limited(split: Split, limit: int | None, seed: int) -> Split:
    """Returns at most `limit` examples of a split; None: all of them."""
    if limit is None or limit >= split.num_examples:
        return split
    return split.take(limit, seed)


def scores_and_labels(
    model: keras.Model,
    split: Split,
    *,
    augmentation: str,
    crops: bool = False,
    mirrored: bool = False,
    stopped: Callable[[], bool] | None = None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns the class scores `(N, M)` and the labels `(N,)` of a split.

    Args:
        model: From images in [0, 1] to class scores.
        split: The examples, in their stored order.
        augmentation: What the model was trained with: it says which view of
            an image counts.
        crops: Whether to take the mean score of five crops instead.
        mirrored: Whether the crops are mirrored too (ten).
        stopped: Asked after every batch; where it says so, the result is None.
    """
    score = _scorer(model, augmentation, crops, mirrored)
    scores, labels = [], []
    for images, batch_labels in stored_batches(model, split):
        scores.append(score(images).numpy())
        labels.append(batch_labels.numpy())
        if stopped is not None and stopped():
            return None
    return np.concatenate(scores), np.concatenate(labels)


def measure_test(
    model: keras.Model,
    split: Split,
    *,
    augmentation: str,
    crops: bool,
    mirrored: bool,
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Tests a model by one view, which is what ships, and by crops beside it.

    Args:
        model: From images in [0, 1] to class scores.
        split: The test examples.
        augmentation: What the model was trained with.
        crops: Whether to test by several crops too.
        mirrored: Whether the crops are mirrored too.

    Returns:
        Scores and labels of the one view, and the errors as a run's files
        name them.
    """
    scores, labels = scores_and_labels(model, split, augmentation=augmentation)
    summary = summarise_test(scores, labels)
    if crops:
        several, _ = scores_and_labels(
            model, split, augmentation=augmentation, crops=True,
            mirrored=mirrored,
        )  # fmt: skip
        error = error_rate(several, labels)
        summary |= {
            "multi_crop_views": 10 if mirrored else 5,
            "multi_crop_error": error,
            "multi_crop_error_interval": interval(error, len(labels)),
        }
    return scores, labels, summary


def stored_batches(model: keras.Model, split: Split) -> tf.data.Dataset:
    """Returns a split in its stored order, as large as the model wants it."""
    shape = model.input_shape[1:]
    return batches(split, _BATCH, training=False, image_shape=shape)


# Tracing takes seconds, and training scores the same model every epoch.
@functools.lru_cache(maxsize=2)
def _scorer(model, augmentation, crops, mirrored):
    shape = model.input_shape[1:]

    @tf.function(
        input_signature=[tf.TensorSpec((None, *shape), tf.float32)],
        autograph=False,
        jit_compile=False,
    )
    def score(images):
        if not crops:
            return model(one_view(images, augmentation), training=False)
        views = multi_crop(images, shape[:2], mirrored)
        return tf.reduce_mean(
            tf.map_fn(lambda view: model(view, training=False), views,
                      fn_output_signature=tf.float32),
            axis=0,
        )  # fmt: skip

    return score


def error_rate(scores: np.ndarray, labels: np.ndarray, top: int = 1) -> float:
    """Share of samples whose class is not among the `top` scores.

    Example:
        >>> error_rate(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1]))
        0.5
    """
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return float(1 - (best == labels[:, None]).any(axis=1).mean())


def interval(error: float, count: int) -> tuple[float, float]:
    """Wilson's 95% interval of an error measured on `count` samples.

    Example:
        >>> [round(end, 3) for end in interval(0.1, 1000)]
        [0.083, 0.12]
    """
    z = 1.959964
    centre = (error + z**2 / (2 * count)) / (1 + z**2 / count)
    spread = z * math.sqrt(error * (1 - error) / count + (z / (2 * count)) ** 2)
    spread /= 1 + z**2 / count
    return max(0.0, centre - spread), min(1.0, centre + spread)


def summarise_test(scores: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Returns the errors by one view as a run's files name them."""
    error = error_rate(scores, labels)
    summary = {
        "test_images": len(labels),
        "test_error": error,
        "test_error_interval": interval(error, len(labels)),
    }
    if scores.shape[1] >= TOP5_CLASSES:
        summary["test_top5_error"] = error_rate(scores, labels, top=5)
    return summary


def confusion_matrix(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Counts `(M, M)`: rows are true classes, columns predicted ones.

    Example:
        >>> confusion_matrix(np.array([[0.9, 0.1], [0.8, 0.2]]), [0, 1])
        array([[1, 0],
               [1, 0]])
    """
    matrix = np.zeros((scores.shape[1],) * 2, np.int64)
    np.add.at(matrix, (labels, scores.argmax(axis=1)), 1)
    return matrix


def class_errors(
    confusion: np.ndarray, class_names: tuple[str, ...]
) -> list[ClassErrors]:
    """Sums a confusion matrix up, class by class."""
    wrong = confusion - np.diag(np.diag(confusion))
    rows = []
    for label, name in enumerate(class_names):
        images, errors = int(confusion[label].sum()), int(wrong[label].sum())
        other = int(wrong[label].argmax())
        times = int(wrong[label, other])
        taken = int(confusion[:, label].sum())
        error = errors / images if images else None
        ends = interval(error, images) if images else (None, None)
        rows.append(
            ClassErrors(
                name=name,
                images=images,
                errors=errors,
                error=error,
                low=ends[0],
                high=ends[1],
                recall=1 - error if images else None,
                precision=(images - errors) / taken if taken else None,
                taken_for=class_names[other] if times else "",
                times=times,
            )
        )
    return rows


def worst_mistakes(
    scores: np.ndarray, labels: np.ndarray, count: int | None = None
) -> np.ndarray:
    """Returns the mistakes furthest from right, the worst first.

    How far: the winning score minus the score of the true class.
    """
    gaps = scores.max(axis=1) - scores[np.arange(len(labels)), labels]
    wrong = np.flatnonzero(scores.argmax(axis=1) != labels)
    return wrong[np.argsort(-gaps[wrong], kind="stable")][:count]


def least_certain(scores: np.ndarray, count: int) -> np.ndarray:
    """Returns the images whose two best scores are closest together.

    Example:
        >>> least_certain(np.array([[0.9, 0.1], [0.5, 0.4]]), 1)
        array([1])
    """
    second, best = np.sort(scores, axis=1)[:, -2:].T
    return np.argsort(best - second, kind="stable")[:count]


def images_at(
    model: keras.Model, split: Split, places: np.ndarray
) -> np.ndarray:
    """Returns the images at some places of a split, in the model's size."""
    found, start = {}, 0
    for images, _ in stored_batches(model, split):
        for place in places[(places >= start) & (places < start + _BATCH)]:
            found[place] = images[place - start].numpy()
        start += _BATCH
    return np.array([found[place] for place in places])
