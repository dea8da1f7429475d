"""The front door: any data set by name, file or folder."""

from encapnet_tf.data.affine_mnist import SIZE, affine_mnist
from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.house_numbers.cache import load_house_numbers
from encapnet_tf.data.images.pillow import fit_array
from encapnet_tf.data.images.sizes import ImageSize, height_and_width, size_text
from encapnet_tf.data.sources import image_folder, named, npz
from encapnet_tf.data.sources.catalogue import DATASETS, SOURCES
from encapnet_tf.data.splits import ArraySplit


def load(
    dataset: str,
    data_dir: str | None = None,
    *,
    image_size: ImageSize | None = None,
) -> Dataset:
    """Loads a data set.

    Args:
        dataset: A key of `DATASETS`, or `npz:PATH` or `folder:PATH` for your
            own.
        data_dir: Folder of data sets known by name: `NAME.npz` or what tfds
            stored. For `house_numbers`, the folder of its cache.
        image_size: What the images are fitted to: the side of a square, or
            height and width, as (96, 64) or "96x64". Default: as they are;
            32 for folders; 128 for `imagenet2012`.

    Returns:
        The data set.

    Raises:
        ValueError: The data are not as expected, or cannot be reached.
    """
    size = height_and_width(image_size)
    kind, colon, path = dataset.partition(":")
    if colon and kind in ("npz", "folder") and path:
        own = npz.load_npz if kind == "npz" else image_folder.load_folder
        return own(path, size)
    if dataset == "house_numbers":
        return _house_numbers(data_dir, size)
    if dataset == "affine_mnist":
        return _affine_mnist(data_dir, size)
    if dataset in SOURCES:
        return named.load_named(dataset, data_dir, size)
    raise ValueError(
        f"`dataset` must be one of {', '.join(DATASETS)}. "
        f"Received: dataset={dataset!r}."
    )


def _affine_mnist(data_dir, size):
    if size not in (None, (SIZE, SIZE)):
        raise ValueError(
            f"The digits of affine_mnist are drawn on {SIZE}x{SIZE} pixels. "
            f"Received: image_size={size_text(*size)}. Leave it out."
        )
    return affine_mnist(named.load_named("mnist", data_dir))


def _house_numbers(cache_dir, size):
    arrays = load_house_numbers(cache_dir)
    splits = []
    for part in ("train", "test"):
        images = arrays[f"x_{part}"]
        if size is not None:
            images = fit_array(images, size)
        splits.append(ArraySplit(images, arrays[f"y_{part}"]))
    names = tuple("0123456789")
    shape = splits[0].image_shape
    return Dataset("house_numbers", *splits, names, shape)
