"""Weights in one small file: an .npz of arrays by their variables' paths.

Kernels are float16, half as many bytes; the vectors, among them the statistics
of batch norms, stay float32. What the network is and how it was trained stands
beside them as JSON.
"""

import json
import pathlib
import zipfile
from typing import Any, BinaryIO, NamedTuple

import numpy as np

SUFFIX = ".npz"
# Beside the variables, whose paths have a slash.
_ABOUT = "about"
_FOLDER = pathlib.Path(__file__).parent


class Archive(NamedTuple):
    """Trained weights and where they come from.

    Attributes:
        about: "variant" and "config" of the network; "recipe" and "summary"
            of its run; its "license".
        values: Arrays by the paths of their variables.
    """

    about: dict[str, Any]
    values: dict[str, np.ndarray]


class SampleImages(NamedTuple):
    """Test images that lie beside an archive.

    Attributes:
        images: uint8 `(N, H, W, C)`.
        labels: Integers `(N,)`.
    """

    images: np.ndarray
    labels: np.ndarray


def shipped_path(name: str) -> pathlib.Path:
    """Returns the file of weights that ship with the package."""
    return _FOLDER / f"{name}{SUFFIX}"


def samples_path(archive: pathlib.Path) -> pathlib.Path:
    """Returns where the sample images of an archive lie, if it has any."""
    return archive.with_suffix(".samples.npz")


def card_path(archive: pathlib.Path) -> pathlib.Path:
    """Returns where the model card of an archive lies."""
    return archive.with_suffix(".md")


def sample_images(name: str) -> SampleImages:
    """Returns test images of a shipped network, as many of each class.

    Example:
        >>> images, labels = sample_images("mnist")
        >>> images.shape, int(np.bincount(labels).min())
        ((200, 28, 28, 1), 20)
    """
    return read_samples(shipped_path(name))


def read_samples(archive: pathlib.Path) -> SampleImages:
    """Reads the sample images of an archive that has some."""
    with np.load(samples_path(archive), allow_pickle=False) as stored:
        return SampleImages(stored["images"], stored["labels"])


def as_stored(value: np.ndarray) -> np.ndarray:
    """Returns an array as archives hold it.

    Example:
        >>> as_stored(np.ones((3, 3), np.float32)).dtype
        dtype('float16')
    """
    # Whoever writes them tests whether they bear it.
    with np.errstate(over="ignore"):
        return value.astype(np.float16 if value.ndim > 1 else np.float32)


def write_archive(file: BinaryIO, archive: Archive) -> None:
    """Writes an archive into an open file."""
    about = np.frombuffer(json.dumps(archive.about).encode(), np.uint8)
    values = {path: as_stored(v) for path, v in archive.values.items()}
    np.savez_compressed(file, **{_ABOUT: about}, **values)


def read_archive(path: pathlib.Path) -> Archive:
    """Reads an archive.

    Raises:
        ValueError: It is damaged, or something else.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            values = {name: stored[name] for name in stored.files}
        about = json.loads(values.pop(_ABOUT).tobytes())
        about = {name: about[name] for name in ("variant", "config", *about)}
    except (OSError, ValueError, KeyError, TypeError, EOFError,
            AttributeError, zipfile.BadZipFile) as problem:  # fmt: skip
        raise damaged(path, problem) from problem
    return Archive(about, values)


def damaged(path: pathlib.Path, problem: Exception | str) -> ValueError:
    """Says that a file of a network cannot be read."""
    reason = str(problem).strip().splitlines() or [type(problem).__name__]
    return ValueError(
        f"{path} is damaged or was written by another version. "
        f"Received: {reason[0][:200]}"
    )
