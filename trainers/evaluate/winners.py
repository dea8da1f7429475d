"""The winning capsule of each image: what it holds, and what it draws."""

from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.data import Split, one_view
from encapnet_tf.layers import CapsuleDecoder
from trainers.evaluate.capsules import class_capsules
from trainers.scoring import stored_batches

# How far the entries of a capsule are moved (Sabour et al., figure 4).
STEPS = np.linspace(-0.25, 0.25, 11, dtype=np.float32)


class Winners(NamedTuple):
    """The longest class capsule of each image of a split.

    Attributes:
        classes: Whose they are `(N,)`.
        capsules: Their entries `(N, D)`.
        errors: Mean squared error of a pixel of their reconstructions `(N,)`;
            None without a decoder.
    """

    classes: np.ndarray
    capsules: np.ndarray
    errors: np.ndarray | None


def decoder_of(model: keras.Model) -> CapsuleDecoder | None:
    """Returns the decoder of a network, None where it has none."""
    for layer in model.layers:
        if isinstance(layer, CapsuleDecoder):
            return layer
    return None


def read_winners(
    model: keras.Model, split: Split, augmentation: str
) -> Winners:
    """Asks a network with class capsules about every image of a split."""
    reader = keras.Model(model.inputs, class_capsules(model))
    decoder = decoder_of(model)

    @tf.function(reduce_retracing=True, autograph=False)
    def read(images):
        view = one_view(images, augmentation)
        capsules = tf.cast(reader(view, training=False), tf.float32)
        classes = tf.argmax(tf.norm(capsules, axis=-1), axis=-1)
        winning = tf.gather(capsules, classes, batch_dims=1)
        if decoder is None:
            return classes, winning, tf.zeros(tf.shape(classes))
        drawn = decoder.reconstruct(capsules)
        error = tf.reduce_mean(tf.square(drawn - view), axis=(1, 2, 3))
        return classes, winning, error

    found = [read(images) for images, _ in stored_batches(model, split)]
    classes, capsules, errors = map(np.concatenate, zip(*found, strict=True))
    return Winners(classes, capsules, None if decoder is None else errors)


def entries_in_use(capsules: np.ndarray) -> float:
    """Counts the entries over which the capsules `(N, D)` of a class differ.

    1 / Σ p², with p the shares of the entries in the variance: 1 where images
    of the class differ in one entry alone, D where they differ in all alike.
    What they have in common, their mean, says no more than the class.

    Example:
        >>> entries_in_use(np.array([[3.0, 5.0, 0.0], [2.0, 5.0, 0.0]]))
        1.0
        >>> entries_in_use(np.array([[1.0, 5.0, -1.0], [2.0, 5.0, -2.0]]))
        2.0
    """
    variances = np.var(capsules, axis=0, dtype=np.float64)
    return float(variances.sum() ** 2 / np.square(variances).sum())


def entries_by_class(winners: Winners, count: int) -> list[float | None]:
    """Returns the entries in use of each of `count` classes.

    None where a class has won fewer than two images, or always with the same
    capsule.

    Example:
        >>> winners = Winners(np.array([1, 1]), np.eye(2), None)
        >>> entries_by_class(winners, 2)
        [None, 2.0]
    """
    owned = [winners.capsules[winners.classes == n] for n in range(count)]
    return [
        entries_in_use(own) if len(own) and np.var(own, axis=0).any() else None
        for own in owned
    ]


def nearest(winners: Winners, place: int, count: int) -> np.ndarray:
    """Returns the images whose capsules are closest to that of one image.

    They are looked for among the images of the same winning class, itself
    left out; the closest come first.
    """
    others = np.flatnonzero(winners.classes == winners.classes[place])
    others = others[others != place]
    differences = winners.capsules[others] - winners.capsules[place]
    distances = np.linalg.norm(differences, axis=-1)
    return others[np.argsort(distances, kind="stable")[:count]]


def draw(
    decoder: CapsuleDecoder, capsules: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    """Returns what a decoder makes of single class capsules.

    Args:
        decoder: Of a network.
        capsules: `(N, D)`.
        classes: Whose they are `(N,)`.

    Returns:
        Images `(N, H, W, C)`.
    """
    count = decoder.input[0].shape[1]
    whole = np.zeros((len(capsules), count, capsules.shape[1]), np.float32)
    whole[np.arange(len(capsules)), classes] = capsules
    return decoder.reconstruct(tf.constant(whole), classes).numpy()


def moved(
    decoder: CapsuleDecoder, capsule: np.ndarray, label: int
) -> np.ndarray:
    """Moves each entry of a capsule `(D,)` in turn by each of STEPS.

    Returns:
        Images `(D, steps, H, W, C)`.
    """
    dim, steps = len(capsule), len(STEPS)
    offsets = np.eye(dim, dtype=np.float32)[:, None] * STEPS[:, None]
    capsules = np.reshape(capsule + offsets, (dim * steps, dim))
    images = draw(decoder, capsules, np.full(len(capsules), label))
    return images.reshape(dim, steps, *images.shape[1:])
