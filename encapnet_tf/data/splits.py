"""Splits: where the pipeline gets its examples, whatever their storage.

The pipeline asks a split for cheap *records* in an order, groups them, keeps
its own share and only then has them *decoded*, so that a worker never decodes
what another one uses and skipping costs next to nothing.
"""

import abc
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from encapnet_tf.data import subsets


class Split(abc.ABC):
    """Examples of one part of a data set.

    Attributes:
        num_examples: Positive integer.
        channels: 1 or 3.
    """

    num_examples: int
    channels: int

    @abc.abstractmethod
    def records(self, shuffle: tuple[int, int] | None) -> tf.data.Dataset:
        """Returns one record per example.

        Args:
            shuffle: None for the stored order, or `(seed, epoch)` for the
                order that belongs to that seed and epoch.
        """

    @abc.abstractmethod
    def decode(self, records, size: tuple[int, int]):
        """Turns a batch of records into images and labels.

        Args:
            records: A batch of what `records` yields.
            size: `(height, width)` the caller would like. Splits that hold
                pixels ignore it, those that decode files follow it.

        Returns:
            uint8 images `(B, H, W, C)` and int32 labels `(B,)`.
        """

    @abc.abstractmethod
    def take(self, count: int, seed: int = 0) -> "Split":
        """Returns a split of `count` examples, classes in proportion."""

    @abc.abstractmethod
    def divide(self, count: int, seed: int = 0) -> tuple["Split", "Split"]:
        """Returns what is left, and a split of about `count` examples."""

    def name_of(self, position: int) -> str:
        """Returns what the example at a place in the stored order is called."""
        return str(position)

    def examples(
        self, size: tuple[int, int], shuffle: tuple[int, int] | None = None
    ) -> tf.data.Dataset:
        """Returns a dataset of single (uint8 image, label) pairs."""
        records = self.records(shuffle).batch(64)
        return records.map(lambda batch: self.decode(batch, size)).unbatch()

    def _check_count(self, count):
        if not 0 < count <= self.num_examples:
            raise ValueError(
                "The number of examples to take must lie between 1 and the "
                f"{self.num_examples} there are. Received: {count}."
            )


class IndexedSplit(Split):
    """Examples that can be read in any order, by their index.

    Args:
        labels: Integer labels `(N,)`.
        channels: 1 or 3.
        read: Function of `(indices, size)` that returns uint8 images
            `(B, H, W, C)`.
        indices: Which of the examples belong to this split; default all.
        names: What all examples are called, such as their files; default:
            their number.
    """

    def __init__(
        self,
        labels: np.ndarray,
        channels: int,
        read: Callable,
        indices: np.ndarray | None = None,
        names: list[str] | None = None,
    ):
        """Keeps the labels and how to read images; reads none."""
        self._all_labels = np.asarray(labels, np.int32)
        self._indices = (
            np.arange(len(self._all_labels)) if indices is None else indices
        )
        self._read = read
        self._names = names
        self.channels = channels
        self.num_examples = len(self._indices)

    @property
    def labels(self) -> np.ndarray:
        """Labels `(N,)` in the stored order."""
        return self._all_labels[self._indices]

    def name_of(self, position):
        """Returns the name, or the number in all the data stored together."""
        index = int(self._indices[position])
        return str(index) if self._names is None else self._names[index]

    def records(self, shuffle):
        """Returns the indices, permuted in full if shuffled."""
        order = self._indices
        if shuffle is not None:
            order = np.random.default_rng(shuffle).permutation(order)
        return tf.data.Dataset.from_tensor_slices(order.astype(np.int64))

    def decode(self, records, size):
        """Reads the images of a batch of indices."""
        images = tf.numpy_function(
            lambda indices: self._read(indices, size),
            [records],
            tf.uint8,
            stateful=False,
        )
        images.set_shape([records.shape[0], None, None, self.channels])
        return images, tf.gather(self._all_labels, records)

    def take(self, count, seed=0):
        """Returns `count` examples, a stratified choice."""
        self._check_count(count)
        return self._subset(subsets.stratified_choice(self.labels, count, seed))

    def divide(self, count, seed=0):
        """Returns what is left, and a stratified choice of about `count`."""
        self._check_count(count)
        chosen = subsets.stratified_choice(self.labels, count, seed, leave=1)
        rest = np.setdiff1d(np.arange(self.num_examples), chosen)
        return self._subset(rest), self._subset(chosen)

    def _subset(self, positions):
        indices = self._indices[positions]
        return IndexedSplit(
            self._all_labels, self.channels, self._read, indices, self._names
        )


class ArraySplit(IndexedSplit):
    """Examples held in memory.

    Args:
        images: uint8 `(N, H, W, C)`.
        labels: Integers `(N,)`.
        names: What they are called, such as their files.

    Attributes:
        image_shape: `(H, W, C)`.

    Example:
        >>> images = np.zeros((4, 32, 32, 3), np.uint8)
        >>> ArraySplit(images, np.array([0, 1, 0, 1])).take(2).labels
        array([0, 1], dtype=int32)
    """

    def __init__(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        names: list[str] | None = None,
    ):
        """Keeps the arrays; copies nothing."""
        super().__init__(
            labels,
            images.shape[-1],
            lambda indices, _: images[indices],
            names=names,
        )
        self.image_shape = images.shape[1:]
