"""From an archive of weights to a version that can be served, once."""

import hashlib
import pathlib

import numpy as np

from encapnet_tf.cache import cache_folder
from encapnet_tf.version import __version__
from encapnet_tf.weights.archive import read_archive, read_samples, samples_path
from export.choices import TOLERANCE
from export.version.folders import versions
from export.version.samples import Samples, noise
from export.version.stages import READING, Wanted, stages
from export.version.writer import VersionWriter
from trainers.progress import StageProgress
from trainers.runs.finished import load_archive


def exported_archive(path: pathlib.Path) -> pathlib.Path:
    """Returns a folder with the SavedModel of an archive's network.

    It is written when it is first asked for, into the user's cache, for this
    version of the project and this content of the archive.

    Args:
        path: The archive.

    Raises:
        ValueError: The archive is damaged.
        OSError: The cache cannot be written.
    """
    key = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    folder = cache_folder() / "exported" / f"{__version__}-{key}" / path.stem
    if not versions(folder):
        print(f"exporting {path.stem}, once, to {folder} …", flush=True)
        try:
            _export(path, folder)
        except OSError as problem:
            raise OSError(
                f"{problem}. ENCAPNET_CACHE names another folder for it."
            ) from problem
    return folder


def _export(path, folder):
    about, _ = read_archive(path)
    wanted = Wanted(
        saved_model=True,
        lite=[],
        onnx=False,
        tolerance=TOLERANCE,
        licence=about.get("license"),
        decoder=about["config"].get("decoder", "none") != "none",
    )
    progress = StageProgress(stages(wanted))
    with progress.shown():
        progress.begin(READING)
        run = load_archive(path)
        samples = _samples(path, run)
        VersionWriter(run, samples, wanted, progress).write_next(folder)


def _samples(path, run):
    if not samples_path(path).is_file():
        shape = tuple(run.model.input_shape[1:])
        return noise(shape, "no samples lie beside the weights")
    images, labels = read_samples(path)
    return Samples(images, labels.astype(np.int64), None, "")
