"""Data in one `.npz` file: `x_train, y_train`, and better also a test part."""

import pathlib
import zipfile

import numpy as np

from encapnet_tf.data import images as image_files
from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.splits import ArraySplit

TEST_FRACTION = 0.15  # split off where the data bring no test part
_MAKE_ONE = (
    "Make one with np.savez(path, x_train=..., y_train=..., x_test=..., "
    "y_test=...)."
)


def load_npz(
    path: str,
    *,
    image_size: int | None = None,
    num_classes: int | None = None,
) -> Dataset:
    """Loads uint8 images and integer labels from one file.

    Args:
        path: The file. It holds `x_train` `(N, H, W, C)` or greyscale
            `(N, H, W)`, `y_train` `(N,)`, optionally `x_test` and `y_test`
            (without them a stratified 15% of the training part becomes the
            test part, always the same) and optionally `class_names`.
        image_size: Side of the square the images are fitted to; default: as
            they are.
        num_classes: How many classes there are, if known beforehand.

    Returns:
        The data set, in memory.
    """
    arrays = _read(pathlib.Path(path).expanduser())
    parts = {part: _part(path, arrays, part) for part in _parts(path, arrays)}
    names = _class_names(path, arrays, parts, num_classes)
    if image_size is not None:
        parts = {
            part: (image_files.fit_array(images, image_size), labels)
            for part, (images, labels) in parts.items()
        }
    train = ArraySplit(*parts["train"])
    if "test" in parts:
        test = ArraySplit(*parts["test"])
    else:
        train, test = divide_off_test(train)
    shape = parts["train"][0].shape[1:]
    return Dataset(f"npz:{path}", train, test, names, shape)


def divide_off_test(train):
    """Splits a fixed 15% off, for data without a test part."""
    count = max(1, round(TEST_FRACTION * train.num_examples))
    train, test = train.divide(count)
    if test.num_examples == 0:
        raise ValueError(
            "Data without a test part need at least two images in a class, to "
            f"split one off. Received: {train.num_examples} images, one of "
            "each class. Add images, or a test part."
        )
    return train, test


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
    has_test = "x_test" in arrays or "y_test" in arrays
    parts = ("train", "test") if has_test else ("train",)
    wanted = [f"{axis}_{part}" for part in parts for axis in "xy"]
    missing = [key for key in wanted if key not in arrays]
    if missing:
        raise ValueError(
            f"{path} must hold x_train and y_train, and x_test and y_test "
            f"together or not at all. Received: keys {sorted(arrays)}, without "
            f"{', '.join(missing)}. {_MAKE_ONE}"
        )
    return parts


def _part(path, arrays, part):
    images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
    _check_images(path, f"x_{part}", images)
    if images.ndim == 3:
        images = images[..., None]
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"y_{part} must be integer labels of shape (N,). Received: "
            f"{labels.dtype} of shape {labels.shape} in {path}. Convert them, "
            "one-hot labels with y.argmax(-1)."
        )
    if len(images) != len(labels):
        raise ValueError(
            f"x_{part} and y_{part} must have the same length. Received: "
            f"{len(images)} images and {len(labels)} labels in {path}."
        )
    return images, labels


def _check_images(path, key, images):
    if images.dtype != np.uint8:
        raise ValueError(
            f"{key} must be uint8, 0 to 255. Received: {images.dtype} in "
            f"{path}. Convert it, values in [0, 1] with "
            "(255 * x).round().astype('uint8')."
        )
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


def _class_names(path, arrays, parts, num_classes):
    """Checks all labels and names the classes."""
    shapes = {images.shape[1:] for images, _ in parts.values()}
    if len(shapes) > 1:
        raise ValueError(
            "Training and test images must have the same shape. Received: "
            f"{sorted(shapes)} in {path}."
        )
    names = tuple(str(name) for name in np.ravel(arrays.get("class_names", ())))
    labels = parts["train"][1]
    expected = num_classes or len(names) or int(labels.max()) + 1
    for part, (_, values) in parts.items():
        if values.min() < 0 or values.max() >= expected:
            raise ValueError(
                f"y_{part} must lie between 0 and {expected - 1}. Received: "
                f"labels from {values.min()} to {values.max()} in {path}. "
                "Renumber the classes from 0."
            )
    _check_every_class(path, labels, expected, known=num_classes is not None)
    return names or tuple(str(label) for label in range(expected))


def _check_every_class(path, labels, expected, known):
    present = np.unique(labels)
    if len(present) < 2:
        raise ValueError(
            "At least two classes are needed. Received: only class "
            f"{present[0]} in y_train of {path}."
        )
    if len(present) < expected and not known:
        first = np.arange(len(present) + 10)
        missing = np.setdiff1d(first[first < expected], present).tolist()
        raise ValueError(
            "Every class from 0 up must have training images. Received: none "
            f"for {missing} in {path}. Renumber the classes without gaps."
        )
