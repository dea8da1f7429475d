"""Own images in folders: one sub-folder per class."""

import concurrent.futures
import os
import pathlib
import warnings

import numpy as np
from PIL import Image

from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.images import pillow
from encapnet_tf.data.sources.own import own_dataset
from encapnet_tf.data.splits import ArraySplit, IndexedSplit, Split

DEFAULT_SIZE = (32, 32)
_MEMORY_LIMIT = 4 * 2**30  # bytes of pixels; larger folders are read as needed
_LAYOUT = (
    "Expected is a folder with one sub-folder of images per class, or train/ "
    "and test/, and better also val/, with one sub-folder per class each."
)
_SHOWN = 5


def load_folder(path: str, size: tuple[int, int] | None = None) -> Dataset:
    """Loads a folder of images.

    Every image becomes RGB and is fitted: resized until it just covers the
    size, the centre kept. Damaged files are left out with a warning, and so
    are images outside the class folders. Without a `test` sub-folder a
    stratified 15% becomes the test part, always the same; a `val` sub-folder
    is what is validated on.

    Args:
        path: Folder with one sub-folder per class, or with `train`, `test`
            and `val` above them.
        size: Height and width to fit the images to; default: 32x32.

    Returns:
        The data set; in memory up to 4 GB of pixels, else read as needed.
    """
    size = size or DEFAULT_SIZE
    root = pathlib.Path(path).expanduser()
    parts = _part_folders(root)
    names = _class_names(parts["train"])
    _warn_of_strays(root, parts)
    originals: list[tuple[int, int]] = []
    splits = {}
    for part, folder in parts.items():
        if part != "train":
            _check_no_other_classes(folder, names)
        splits[part] = _split(root, folder, names, size, originals)
    return own_dataset(f"folder:{path}", splits, names, (*size, 3), originals)


def _part_folders(root):
    """Finds train/, val/ and test/, or takes the whole folder to train on.

    A folder `train` that holds images itself is a class of trains.
    """
    if not root.is_dir():
        raise ValueError(f"{_LAYOUT} Received: {root}, which is not a folder.")
    parts = {
        part: root / part
        for part in ("train", "val", "test")
        if (root / part).is_dir() and _subfolders(root / part)
    }
    if "train" not in parts:
        return {"train": root}
    unused = {entry.name for entry in _subfolders(root)} - set(parts)
    if unused:
        warnings.warn(
            f"Only train/, val/ and test/ of {root} are used, with a "
            "sub-folder per class each. Received also: "
            f"{', '.join(sorted(unused))}.",
            stacklevel=4,
        )
    return parts


def _warn_of_strays(root, parts):
    """Names images that lie in no class folder: nobody knows their class."""
    folders = {root, *parts.values()}
    strays = [
        str(file.relative_to(root))
        for folder in sorted(folders)
        for file in sorted(folder.iterdir())
        if _is_image(file)
    ]
    if strays:
        warnings.warn(
            f"Images outside the class folders of {root} are left out: "
            f"{len(strays)}, {_some(strays)}.",
            stacklevel=3,
        )


def _is_image(file):
    return (
        file.suffix.lower() in pillow.SUFFIXES
        and not file.name.startswith(".")
        and file.is_file()
    )


def _some(words):
    more = len(words) - _SHOWN
    return ", ".join(words[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _subfolders(folder):
    return [
        entry
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.name.startswith((".", "__"))
    ]


def _class_names(folder):
    names = [entry.name for entry in _subfolders(folder)]
    if len(names) == 0:
        raise ValueError(
            f"{_LAYOUT} Received: {folder}, which has no sub-folders."
        )
    if len(names) == 1:
        raise ValueError(
            f"At least two classes are needed. Received: only {names[0]!r} in "
            f"{folder}."
        )
    if all(name.isdecimal() for name in names):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))


def _check_no_other_classes(folder, names):
    others = {entry.name for entry in _subfolders(folder)} - set(names)
    if others:
        raise ValueError(
            f"{folder} may have the classes of train/ only. Received also: "
            f"{', '.join(sorted(others))}."
        )


def _split(root, folder, names, size, originals) -> Split:
    """Holds the pixels if they fit in memory, else the names of the files.

    Adds the original sizes of the images to `originals`.
    """
    files, labels = _list_files(folder, names)
    in_memory = len(files) * size[0] * size[1] * 3 <= _MEMORY_LIMIT
    if in_memory:
        pixels = np.empty((len(files), *size, 3), np.uint8)

    def check(index):
        """Returns the original size, None if the file is damaged."""
        try:
            with Image.open(files[index]) as image:
                found = (image.height, image.width)
            if in_memory:
                pixels[index] = pillow.read_image(files[index], size)
        except (OSError, Image.DecompressionBombError):
            return None
        return found

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(check, range(len(files))))
    good = np.array([sizes is not None for sizes in found])
    originals += [sizes for sizes in found if sizes is not None]
    _report_damaged(
        folder, [files[i] for i in np.flatnonzero(~good)], len(good)
    )
    if folder == root or folder == root / "train":
        _check_classes_left(folder, names, labels[good])
    kept = [files[i] for i in np.flatnonzero(good)]
    called = [str(file.relative_to(root)) for file in kept]
    if in_memory:
        pixels = pixels if good.all() else pixels[good]
        return ArraySplit(pixels, labels[good], called)
    return IndexedSplit(labels[good], 3, _file_reader(kept), names=called)


def _file_reader(files):
    def read(indices, size):
        images = np.empty((len(indices), *size, 3), np.uint8)
        for row, index in enumerate(indices):
            images[row] = pillow.read_image(files[index], size)
        return images

    return read


def _list_files(folder, names):
    """Lists the files class by class; a class may lack test images."""
    files, labels = [], []
    for label, name in enumerate(names):
        found = sorted(filter(_is_image, (folder / name).rglob("*")))
        files += found
        labels += [label] * len(found)
    if not files:
        raise ValueError(f"{_LAYOUT} Received: {folder}, without any image.")
    return files, np.array(labels, np.int32)


def _report_damaged(folder, damaged, total):
    if not damaged:
        return
    shown = _some([str(file.relative_to(folder)) for file in damaged])
    if 2 * len(damaged) > total:
        raise ValueError(
            f"Most images must be readable. Received: {len(damaged)} of "
            f"{total} files in {folder} damaged: {shown}."
        )
    warnings.warn(
        f"{len(damaged)} of {total} files in {folder} are damaged and left "
        f"out: {shown}.",
        stacklevel=5,
    )


def _check_classes_left(folder, names, labels):
    counts = np.bincount(labels, minlength=len(names))
    if counts.min() > 0:
        return
    place = folder / names[int(counts.argmin())]
    if any(map(_is_image, place.rglob("*"))):
        raise ValueError(
            "Every class must have readable images. Received: all of "
            f"{place} damaged."
        )
    raise ValueError(
        "Every class folder must hold images "
        f"({' '.join(sorted(pillow.SUFFIXES))}). Received: {place} "
        "without any. Fill or remove it."
    )
