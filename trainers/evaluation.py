"""Scores and errors of a model on a split."""

import math

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.data import Split, batches, multi_crop

_BATCH = 256


def scores_and_labels(
    model: keras.Model, split: Split, *, crops: bool = False, flip: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the class scores `(N, M)` and the labels `(N,)` of a split.

    Args:
        model: From images in [0, 1] to class scores.
        split: The examples, in their stored order.
        crops: Whether to take the mean score of five crops.
        flip: Whether the crops are mirrored too (ten).
    """
    shape = model.input_shape[1:]

    @tf.function(jit_compile=False, reduce_retracing=True)
    def score(images):
        if not crops:
            return model(images, training=False)
        views = multi_crop(images, shape[:2], flip)
        return tf.reduce_mean(
            tf.map_fn(lambda view: model(view, training=False), views,
                      fn_output_signature=tf.float32),
            axis=0,
        )  # fmt: skip

    scores, labels = [], []
    dataset = batches(split, _BATCH, training=False, image_shape=shape)
    for images, batch_labels in dataset:
        scores.append(score(images).numpy())
        labels.append(batch_labels.numpy())
    return np.concatenate(scores), np.concatenate(labels)


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
