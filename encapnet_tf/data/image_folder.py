"""Own images in folders: one sub-folder per class."""

import concurrent.futures
import os
import pathlib
import warnings

import numpy as np

from encapnet_tf.data import images as image_files
from encapnet_tf.data.dataset import Dataset
from encapnet_tf.data.npz import divide_off_test
from encapnet_tf.data.splits import ArraySplit, IndexedSplit, Split

DEFAULT_SIZE = 32
_MEMORY_LIMIT = 4 * 2**30  # bytes of pixels; larger folders are read as needed
_LAYOUT = (
    "Expected is a folder with one sub-folder of images per class, or train/ "
    "and test/ with one sub-folder per class each."
)


def load_folder(path: str, *, image_size: int | None = None) -> Dataset:
    """Loads a folder of images.

    Every image becomes RGB and is fitted to a square: the short side is
    resized, the centre kept. Damaged files are left out with a warning.
    Without a `test` sub-folder a stratified 15% becomes the test part, always
    the same.

    Args:
        path: Folder with one sub-folder per class, or with `train` and
            `test` above them.
        image_size: Side of the square, default 32.

    Returns:
        The data set; in memory up to 4 GB of pixels, else read as needed.
    """
    size = image_size or DEFAULT_SIZE
    root = pathlib.Path(path).expanduser()
    parts = _part_folders(root)
    names = _class_names(parts["train"])
    if "test" in parts:
        _check_same_classes(parts, names)
    splits = {
        part: _split(folder, names, size) for part, folder in parts.items()
    }
    train, test = splits["train"], splits.get("test")
    if test is None:
        train, test = divide_off_test(train)
    return Dataset(f"folder:{path}", train, test, names, (size, size, 3))


def _part_folders(root):
    """Finds train/ and test/, or takes the whole folder as training data.

    A folder `train` that holds images itself is a class of trains.
    """
    if not root.is_dir():
        raise ValueError(f"{_LAYOUT} Received: {root}, which is not a folder.")
    parts = {
        part: root / part
        for part in ("train", "test")
        if (root / part).is_dir() and _subfolders(root / part)
    }
    if "train" not in parts:
        return {"train": root}
    unused = {entry.name for entry in _subfolders(root)} - set(parts)
    if unused:
        warnings.warn(
            f"Only train/ and test/ of {root} are used, with a sub-folder per "
            f"class each. Received also: {', '.join(sorted(unused))}.",
            stacklevel=4,
        )
    return parts


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


def _check_same_classes(parts, names):
    found = {entry.name for entry in _subfolders(parts["test"])}
    if found != set(names):
        raise ValueError(
            "train/ and test/ must have the same classes. Received: only in "
            f"train: {sorted(set(names) - found)}, only in test: "
            f"{sorted(found - set(names))}."
        )


def _split(folder, names, size) -> Split:
    """Holds the pixels if they fit in memory, else the names of the files."""
    files, labels = _list_files(folder, names)
    in_memory = len(files) * size * size * 3 <= _MEMORY_LIMIT
    if in_memory:
        pixels = np.empty((len(files), size, size, 3), np.uint8)

    def check(index):
        try:
            if in_memory:
                pixels[index] = image_files.read_image(files[index], size)
            else:
                image_files.check_header(files[index])
        except OSError:
            return False
        return True

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        good = np.fromiter(pool.map(check, range(len(files))), bool)
    _report_damaged(
        folder, [files[i] for i in np.flatnonzero(~good)], len(good)
    )
    _check_classes_left(folder, names, labels[good])
    if in_memory:
        kept = pixels if good.all() else pixels[good]
        return ArraySplit(kept, labels[good])
    kept = [files[i] for i in np.flatnonzero(good)]
    return IndexedSplit(labels[good], 3, _file_reader(kept))


def _file_reader(files):
    def read(indices, size):
        square = max(size)
        images = np.empty((len(indices), square, square, 3), np.uint8)
        for row, index in enumerate(indices):
            images[row] = image_files.read_image(files[index], square)
        return images

    return read


def _list_files(folder, names):
    files, labels = [], []
    for label, name in enumerate(names):
        found = sorted(
            file
            for file in (folder / name).rglob("*")
            if file.suffix.lower() in image_files.SUFFIXES
            and not file.name.startswith(".")
            and file.is_file()
        )
        if not found:
            raise ValueError(
                "Every class folder must hold images "
                f"({' '.join(sorted(image_files.SUFFIXES))}). Received: "
                f"{folder / name} without any. Fill or remove it."
            )
        files += found
        labels += [label] * len(found)
    return files, np.array(labels, np.int32)


def _report_damaged(folder, damaged, total):
    if not damaged:
        return
    shown = ", ".join(str(file.relative_to(folder)) for file in damaged[:5])
    shown += f" and {len(damaged) - 5} more" if len(damaged) > 5 else ""
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
    if counts.min() == 0:
        raise ValueError(
            "Every class must have readable images. Received: all of "
            f"{folder / names[int(counts.argmin())]} damaged."
        )
