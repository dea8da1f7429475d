"""What the class capsules of a network do on a split."""

from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.data import Split, one_view
from encapnet_tf.layers import Lengths
from trainers.scoring import stored_batches


class CapsuleStatistics(NamedTuple):
    """What the class capsules do; rows without images are NaN.

    Attributes:
        lengths: Mean length `(M, M)` per true class and capsule.
        effects: Mean change of the score `(M, D)`, per winning capsule, when
            one of its entries is set to zero.
    """

    lengths: np.ndarray
    effects: np.ndarray


def class_capsules(model: keras.Model) -> keras.KerasTensor:
    """Returns the capsules `(B, M, D)` whose lengths are the class scores."""
    (lengths,) = (one for one in model.layers if isinstance(one, Lengths))
    return lengths.input


def capsule_statistics(
    model: keras.Model, split: Split, augmentation: str
) -> CapsuleStatistics:
    """Measures what the class capsules of a model do on a split.

    The score of a class is the length of its capsule, so that setting an
    entry to zero changes it from |v| to √(|v|² − v_d²).
    """
    output = class_capsules(model)
    reader = keras.Model(model.inputs, output)
    read = tf.function(
        lambda images: reader(one_view(images, augmentation), training=False),
        reduce_retracing=True,
    )
    num_classes, dim = output.shape[1:]
    length_sums, shown = np.zeros((num_classes, num_classes)), []
    effect_sums, won = np.zeros((num_classes, dim)), []
    for images, labels in stored_batches(model, split):
        capsules = np.asarray(read(images), np.float64)
        lengths = np.linalg.norm(capsules, axis=-1)
        winners = lengths.argmax(axis=-1)
        np.add.at(length_sums, labels.numpy(), lengths)
        np.add.at(effect_sums, winners, _zeroing(capsules, winners))
        shown.extend(labels.numpy())
        won.extend(winners)
    return CapsuleStatistics(
        lengths=_means(length_sums, shown), effects=_means(effect_sums, won)
    )


def _zeroing(capsules, winners):
    """Changes of the winners' lengths, one entry at a time set to zero."""
    winning = capsules[np.arange(len(winners)), winners]
    squares = np.square(winning)
    total = squares.sum(axis=-1, keepdims=True)
    return np.sqrt(np.maximum(total - squares, 0)) - np.sqrt(total)


def _means(sums, rows):
    counts = np.bincount(rows, minlength=len(sums))[:, None]
    return np.where(counts, sums / np.maximum(counts, 1), np.nan)
