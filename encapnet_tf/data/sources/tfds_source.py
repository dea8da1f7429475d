"""Data stored by TensorFlow Datasets (tfds), held in memory or streamed.

tfds is imported where it is needed: importing it takes seconds.
"""

import pathlib

import numpy as np
import tensorflow as tf

from encapnet_tf.data.images import graph, pillow
from encapnet_tf.data.splits import ArraySplit, Split

_BUFFER = 4096  # encoded images a stream is shuffled among


def find_prepared(name: str, data_dir: pathlib.Path) -> pathlib.Path | None:
    """Finds the newest version of a data set that tfds has stored.

    Args:
        name: What tfds calls the data set.
        data_dir: The folder tfds stores into, or the data set's own folder
            in it, or that of one version.

    Returns:
        Folder of the version, or None.
    """
    if data_dir.parent.name == name and _is_prepared(data_dir):
        return data_dir
    own = data_dir if data_dir.name == name else data_dir / name
    versions = filter(_is_prepared, own.glob("*") if own.is_dir() else ())
    return max(versions, key=_version, default=None)


def _is_prepared(folder):
    return (folder / "dataset_info.json").is_file()


def _version(folder):
    return [int(p) if p.isdigit() else -1 for p in folder.name.split(".")]


def stored_builder(folder: pathlib.Path):
    """Opens a prepared folder; needs neither network nor the data's code."""
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(str(folder))


def download_builder(name: str, data_dir: pathlib.Path):
    """Downloads and prepares a data set."""
    import tensorflow_datasets as tfds

    builder = tfds.builder(name, data_dir=str(data_dir))
    builder.download_and_prepare()
    return builder


def array_split(
    builder, part: str, image_size: tuple[int, int] | None
) -> ArraySplit:
    """Reads one part of a data set into memory."""
    examples = builder.as_dataset(split=part, shuffle_files=False)
    images, labels = [], []
    for batch in examples.batch(512).as_numpy_iterator():
        images.append(batch["image"])
        labels.append(batch["label"])
    pixels = np.concatenate(images)
    if image_size is not None:
        pixels = pillow.fit_array(pixels, image_size)
    return ArraySplit(pixels, np.concatenate(labels))


class StreamSplit(Split):
    """A range of a data set too large for memory, read from its files.

    Training order is that of shuffled files and a shuffle buffer, a function
    of seed and epoch. Subsets are ranges of the stored order, which tfds made
    random when it stored the data.

    Args:
        builder: A tfds builder of data with `image` and `label`.
        part: Name of the part, such as "train".
        start: First example.
        stop: Behind the last example; default all.
    """

    channels = 3

    def __init__(
        self, builder, part: str, start: int = 0, stop: int | None = None
    ):
        """Keeps the range; reads nothing."""
        self._builder = builder
        self._part = part
        self._start = start
        total = builder.info.splits[part].num_examples
        self._stop = total if stop is None else stop
        self.num_examples = self._stop - start

    def records(self, shuffle):
        """Returns encoded images with their labels."""
        import tensorflow_datasets as tfds

        config = tfds.ReadConfig(
            shuffle_seed=None if shuffle is None else _one_seed(shuffle),
            skip_prefetch=True,
        )
        encoded = self._builder.as_dataset(
            split=f"{self._part}[{self._start}:{self._stop}]",
            shuffle_files=shuffle is not None,
            decoders={"image": tfds.decode.SkipDecoding()},
            read_config=config,
        ).map(lambda example: {key: example[key] for key in ("image", "label")})
        if shuffle is not None:
            encoded = encoded.shuffle(
                _BUFFER, _one_seed(shuffle), reshuffle_each_iteration=False
            )
        return encoded

    def decode(self, records, size):
        """Decodes each image and fits it to the size."""
        images = graph.decode(records["image"], (*size, 3))
        return images, tf.cast(records["label"], tf.int32)

    def take(self, count, seed=0):
        """Returns the first `count` examples of the stored, random order."""
        self._check_count(count)
        stop = self._start + count
        return StreamSplit(self._builder, self._part, self._start, stop)

    def divide(self, count, seed=0):
        """Returns the head, and the last `count` examples."""
        self._check_count(count)
        middle = self._stop - count
        return (
            StreamSplit(self._builder, self._part, self._start, middle),
            StreamSplit(self._builder, self._part, middle, self._stop),
        )


def _one_seed(shuffle):
    return int(np.random.default_rng(shuffle).integers(2**31))
