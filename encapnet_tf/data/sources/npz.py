"""Data in one `.npz` file: `x_train, y_train`, and better also a test part."""

import pathlib
import zipfile

import numpy as np

from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.images import pillow
from encapnet_tf.data.sources.labels import number_classes
from encapnet_tf.data.sources.own import own_dataset
from encapnet_tf.data.splits import ArraySplit

_MAKE_ONE = (
    "Make one with np.savez(path, x_train=..., y_train=..., x_test=..., "
    "y_test=...)."
)


def load_npz(
    path: str,
    size: tuple[int, int] | None = None,
    num_classes: int | None = None,
) -> Dataset:
    """Loads images and labels from one file.

    Args:
        path: The file. It holds `x_train` `(N, H, W, C)` or greyscale
            `(N, H, W)`, whole numbers from 0 to 255 or floats in [0, 1], and
            `y_train` `(N,)`, integers or words; optionally `x_val` and
            `y_val`, `x_test` and `y_test` (without these a stratified 15% of
            the training part becomes the test part, always the same) and
            optionally `class_names`.
        size: Height and width to fit the images to; default: as they are.
        num_classes: How many classes there are, if known beforehand.

    Returns:
        The data set, in memory.
    """
    arrays = _read(pathlib.Path(path).expanduser())
    parts = _parts(path, arrays)
    images = {part: _images(path, arrays, part) for part in parts}
    labels = {part: _labels(path, arrays, part) for part in parts}
    _check_same_shape(path, images)
    given = np.ravel(arrays.get("class_names", ()))
    labels, names = number_classes(
        path, labels, tuple(_text(name) for name in given), num_classes
    )
    original = images["train"].shape[1:3]
    size = size or original
    splits = {
        part: ArraySplit(pillow.fit_array(images[part], size), own)
        for part, own in labels.items()
    }
    shape = splits["train"].image_shape
    return own_dataset(f"npz:{path}", splits, names, shape, [original])


def _read(path):
    if not path.is_file():
        raise ValueError(
            f"An .npz file is expected. Received: {path}, which is not a "
            f"file. {_MAKE_ONE}"
        )
    try:
        stored = np.load(path, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array")
        with stored:
            return {key: stored[key] for key in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = str(error)
        if "allow_pickle" in reason:
            reason = "it holds Python objects, not arrays of numbers"
        raise ValueError(
            "An .npz file of plain arrays is expected. Received: "
            f"{path}: {reason}. {_MAKE_ONE}"
        ) from error


def _parts(path, arrays):
    parts = [
        part
        for part in ("train", "val", "test")
        if part == "train" or f"x_{part}" in arrays or f"y_{part}" in arrays
    ]
    wanted = [f"{axis}_{part}" for part in parts for axis in "xy"]
    missing = [key for key in wanted if key not in arrays]
    if missing:
        raise ValueError(
            f"{path} must hold x_train and y_train, and x_test and y_test "
            "(or x_val and y_val) together or not at all. Received: keys "
            f"{sorted(arrays)}, without {', '.join(missing)}. {_MAKE_ONE}"
        )
    return parts


def _images(path, arrays, part):
    key = f"x_{part}"
    images = arrays[key]
    grey = images.ndim == 3
    if not grey and (images.ndim != 4 or images.shape[-1] not in (1, 3)):
        raise ValueError(
            f"{key} must have shape (N, H, W), (N, H, W, 1) or (N, H, W, 3). "
            f"Received: {images.shape} in {path}. Move the channels last and "
            "drop an alpha channel."
        )
    if 0 in images.shape:
        raise ValueError(
            f"{key} must hold images. Received: shape {images.shape} in {path}."
        )
    pixels = _pixels(path, key, images)
    return pixels[..., None] if grey else pixels


def _pixels(path, key, images):
    """Brings whole numbers from 0 to 255, or floats in [0, 1], to uint8."""
    if images.dtype == np.uint8:
        return images
    kind = images.dtype.kind
    top = {"f": 1, "b": 1, "i": 255, "u": 255}.get(kind)
    if top is None:
        least = most = None
    else:
        least, most = images.min(), images.max()
        # A NaN compares false.
        if least >= 0 and most <= top:
            scaled = images * np.float32(255) if top == 1 else images
            return np.round(scaled).astype(np.uint8)
    raise ValueError(
        f"{key} must be whole numbers from 0 to 255, or floats in [0, 1]. "
        f"Received: {images.dtype} from {least} to {most} in {path}. Convert "
        "floats from 0 to 255 with x.round().astype('uint8'), and bring others "
        "to [0, 1] first."
    )


def _labels(path, arrays, part):
    labels = arrays[f"y_{part}"]
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or labels.dtype.kind not in "iuSU":
        raise ValueError(
            f"y_{part} must be integers or words of shape (N,). Received: "
            f"{labels.dtype} of shape {labels.shape} in {path}. Convert them, "
            "one-hot labels with y.argmax(-1), floats with y.astype(int)."
        )
    count = len(arrays[f"x_{part}"])
    if count != len(labels):
        raise ValueError(
            f"x_{part} and y_{part} must have the same length. Received: "
            f"{count} images and {len(labels)} labels in {path}."
        )
    if labels.dtype.kind == "S":
        return np.array([_text(label) for label in labels])
    return labels


def _text(word):
    return word.decode() if isinstance(word, bytes) else str(word)


def _check_same_shape(path, images):
    shapes = {part: own.shape[1:] for part, own in images.items()}
    if len(set(shapes.values())) > 1:
        raise ValueError(
            "The images of all parts must have the same shape. Received: "
            f"{shapes} in {path}."
        )
