"""Data sets known by name, and where each of them may be found."""

import dataclasses
import os
import pathlib

from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.sources import network, tfds_source
from encapnet_tf.data.sources.catalogue import SOURCES
from encapnet_tf.data.sources.npz import load_npz


class DataUnavailable(ValueError):
    """The data are not here and cannot be fetched."""


def load_named(
    name: str,
    data_dir: str | None = None,
    size: tuple[int, int] | None = None,
) -> Dataset:
    """Loads a data set from an .npz file, a prepared tfds folder or the net.

    Args:
        name: A key of `SOURCES`.
        data_dir: Folder with `NAME.npz`, or the one tfds stores into.
            Default: the environment variable `TFDS_DATA_DIR`, else
            `~/tensorflow_datasets`.
        size: Height and width to fit the images to; default: as they are,
            and 128x128 for streamed data.

    Raises:
        DataUnavailable: Nothing there and no download possible.
    """
    source = SOURCES[name]
    folder = _data_folder(data_dir)
    file = folder / f"{name}.npz"
    if file.is_file():
        dataset = load_npz(str(file), size, source.num_classes)
        names = source.class_names or dataset.class_names
        return dataclasses.replace(
            dataset, name=name, class_names=names, flip=source.flip
        )
    return _from_tfds(name, _builder(name, folder), size)


def _data_folder(data_dir):
    default = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
    return pathlib.Path(data_dir or default).expanduser()


def _builder(name, folder):
    source = SOURCES[name]
    prepared = tfds_source.find_prepared(source.tfds_name, folder)
    if prepared is not None:
        return tfds_source.stored_builder(prepared)
    if source.url is None or not network.answers(source.url):
        raise DataUnavailable(_ways_out(name, folder))
    try:
        return tfds_source.download_builder(source.tfds_name, folder)
    except OSError as error:  # the network's errors are among these
        failure = f"the download failed ({error})"
        raise DataUnavailable(_ways_out(name, folder, failure)) from error


def _ways_out(name, folder, failure=None):
    source = SOURCES[name]
    if source.url is None:
        reason = "it cannot be downloaded without a licence"
        third = (
            "get the archives by hand and let tfds prepare them (see its "
            f"catalogue page of {source.tfds_name})"
        )
    else:
        reason = failure or f"{source.url} does not answer"
        third = "run once with a network, and it is downloaded there"
    return (
        f"The data set {name} is expected in the data folder. Received: "
        f"{folder}, which has neither {name}.npz nor a prepared tfds folder "
        f"{source.tfds_name}, and {reason}. Three ways out: put {name}.npz "
        "there with x_train, y_train, x_test and y_test; point the data folder "
        f"(data_dir) at one where tfds has prepared {source.tfds_name}; or "
        f"{third}. Or use house_numbers, which needs no download."
    )


def _from_tfds(name, builder, size):
    source = SOURCES[name]
    names = source.class_names or tuple(builder.info.features["label"].names)
    if source.stream_size is not None:
        size = size or (source.stream_size, source.stream_size)
        train = tfds_source.StreamSplit(builder, "train")
        test = tfds_source.StreamSplit(builder, source.test_part)
        shape = (*size, 3)
    else:
        train = tfds_source.array_split(builder, "train", size)
        test = tfds_source.array_split(builder, source.test_part, size)
        shape = train.image_shape
    return Dataset(name, train, test, names, shape, source.flip)
