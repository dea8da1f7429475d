"""Data sets known by name, and where each of them may be found."""

import dataclasses
import os
import pathlib

from encapnet_tf.data import network, tfds_source
from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.npz import load_npz

_DIGITS = tuple("0123456789")
_CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
_FASHION = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


class DataUnavailable(ValueError):
    """The data are not here and cannot be fetched."""


@dataclasses.dataclass(frozen=True)
class _Source:
    """What is known about a data set.

    Attributes:
        description: One line.
        tfds_name: What tfds calls it.
        num_classes: Number of classes.
        flip: Whether a mirrored image still shows its class.
        url: A file of the download; None if it needs a licence and hands.
        class_names: In label order; None: as tfds has them, else numbers.
        test_part: What tfds calls the part to test on.
        stream_size: Default side of images that are streamed, not held in
            memory; None if the data fit.
    """

    description: str
    tfds_name: str
    num_classes: int
    flip: bool
    url: str | None
    class_names: tuple[str, ...] | None = None
    test_part: str = "test"
    stream_size: int | None = None


SOURCES = {
    "svhn": _Source(
        "Street View house numbers, cropped digits, 32x32 RGB, 10 classes",
        "svhn_cropped",
        10,
        False,
        "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
        _DIGITS,
    ),
    "cifar10": _Source(
        "Photographs of animals and vehicles, 32x32 RGB, 10 classes",
        "cifar10",
        10,
        True,
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        tuple(_CIFAR10.split()),
    ),
    "cifar100": _Source(
        "Photographs of things, plants and animals, 32x32 RGB, 100 classes",
        "cifar100",
        100,
        True,
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    ),
    "mnist": _Source(
        "Handwritten digits, 28x28 grey, 10 classes",
        "mnist",
        10,
        False,
        "https://storage.googleapis.com/cvdf-datasets/mnist/"
        "train-images-idx3-ubyte.gz",
        _DIGITS,
    ),
    "fashion_mnist": _Source(
        "Pieces of clothing, 28x28 grey, 10 classes",
        "fashion_mnist",
        10,
        True,
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
        "train-images-idx3-ubyte.gz",
        _FASHION,
    ),
    "imagenet2012": _Source(
        "ImageNet 2012 photographs, 1000 classes; not downloadable by itself",
        "imagenet2012",
        1000,
        True,
        None,
        test_part="validation",
        stream_size=128,  # paper, section 4: h-ImageNet
    ),
}


def load_named(
    name: str, data_dir: str | None = None, *, image_size: int | None = None
) -> Dataset:
    """Loads a data set from an .npz file, a prepared tfds folder or the net.

    Args:
        name: A key of `SOURCES`.
        data_dir: Folder with `NAME.npz`, or the one tfds stores into.
            Default: the environment variable `TFDS_DATA_DIR`, else
            `~/tensorflow_datasets`.
        image_size: Side of the square images are fitted to; default: as they
            are, and 128 for streamed data.

    Raises:
        DataUnavailable: Nothing there and no download possible.
    """
    source = SOURCES[name]
    folder = _data_folder(data_dir)
    file = folder / f"{name}.npz"
    if file.is_file():
        dataset = load_npz(
            str(file), image_size=image_size, num_classes=source.num_classes
        )
        names = source.class_names or dataset.class_names
        return dataclasses.replace(
            dataset, name=name, class_names=names, flip=source.flip
        )
    return _from_tfds(name, _builder(name, folder), image_size)


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


def _from_tfds(name, builder, image_size):
    source = SOURCES[name]
    names = source.class_names or tuple(builder.info.features["label"].names)
    if source.stream_size is not None:
        side = image_size or source.stream_size
        train = tfds_source.StreamSplit(builder, "train")
        test = tfds_source.StreamSplit(builder, source.test_part)
        shape = (side, side, 3)
    else:
        train = tfds_source.array_split(builder, "train", image_size)
        test = tfds_source.array_split(builder, source.test_part, image_size)
        shape = train.image_shape
    return Dataset(name, train, test, names, shape, source.flip)
