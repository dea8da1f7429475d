"""The images that a user names: files, and folders of them."""

import pathlib
import sys
from collections.abc import Iterator

import numpy as np
from PIL import Image

from encapnet_tf.data.images.pillow import SUFFIXES, read_image

_BATCH = 64


def find_images(names: list[str]) -> tuple[list[pathlib.Path], int]:
    """Returns the files named or found, and how many names led nowhere."""
    paths, missing = [], 0
    for name in names:
        path = pathlib.Path(name)
        found = [path]
        if not path.exists():
            missing, found = missing + 1, []
            _complain(f"There is no file {path}.")
        elif path.is_dir():
            found = sorted(
                file
                for file in path.rglob("*")
                if file.suffix.lower() in SUFFIXES and file.is_file()
            )
            if not found:
                missing += 1
                _complain(f"There is no image in {path}.")
        paths += found
    return paths, missing


def image_batches(
    paths: list[pathlib.Path], shape: tuple[int, int, int]
) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yields names and images; reports files that are not images.

    Args:
        paths: The files.
        shape: `(H, W, C)` of the images that a model takes.
    """
    for start in range(0, len(paths), _BATCH):
        names, images = [], []
        for path in paths[start : start + _BATCH]:
            try:
                images.append(_read(path, shape))
                names.append(str(path))
            except OSError as problem:
                _complain(str(problem))
        if names:
            yield names, np.stack(images)


def _read(path, shape):
    pixels = read_image(path, shape[:2])
    if shape[-1] == 1:
        pixels = np.asarray(Image.fromarray(pixels).convert("L"))[..., None]
    return pixels


def _complain(problem):
    print(f"error: {' '.join(problem.split())}", file=sys.stderr)
