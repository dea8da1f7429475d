"""The data sets that `load` knows, and what is known about each.

Importing this starts neither TensorFlow nor a download.
"""

import dataclasses

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


@dataclasses.dataclass(frozen=True)
class Source:
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
    "svhn": Source(
        "Street View house numbers, cropped digits, 32x32 RGB, 10 classes",
        "svhn_cropped",
        10,
        False,
        "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
        _DIGITS,
    ),
    "cifar10": Source(
        "Photographs of animals and vehicles, 32x32 RGB, 10 classes",
        "cifar10",
        10,
        True,
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        tuple(_CIFAR10.split()),
    ),
    "cifar100": Source(
        "Photographs of things, plants and animals, 32x32 RGB, 100 classes",
        "cifar100",
        100,
        True,
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    ),
    "mnist": Source(
        "Handwritten digits, 28x28 grey, 10 classes",
        "mnist",
        10,
        False,
        "https://storage.googleapis.com/cvdf-datasets/mnist/"
        "train-images-idx3-ubyte.gz",
        _DIGITS,
    ),
    "fashion_mnist": Source(
        "Pieces of clothing, 28x28 grey, 10 classes",
        "fashion_mnist",
        10,
        True,
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
        "train-images-idx3-ubyte.gz",
        _FASHION,
    ),
    "imagenet2012": Source(
        "ImageNet 2012 photographs, 1000 classes; not downloadable by itself",
        "imagenet2012",
        1000,
        True,
        None,
        test_part="validation",
        stream_size=128,  # paper, section 4: h-ImageNet
    ),
}

DATASETS: dict[str, str] = {
    "house_numbers": (
        "Rendered house numbers, 32x32 RGB, 10 classes; built in, no download"
    ),
    **{name: source.description for name, source in SOURCES.items()},
    "affine_mnist": (
        "MNIST moved about on 40x40; for the test also turned, sheared, scaled"
    ),
    "npz:PATH": "Own images in an .npz file: x_train, y_train, x_test, y_test",
    "folder:PATH": "Own images, one sub-folder per class",
}
