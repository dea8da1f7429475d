"""From a run's folder to a version that others can use."""

import pathlib
import tempfile
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from encapnet_tf.checks import check_choice
from export.graph.inference import inference
from export.graph.servable import Servable
from export.opened import (
    LABELS,
    OpenedLite,
    OpenedRun,
    OpenedSavedModel,
)
from export.version.folders import write_version
from export.version.lite import QUANTIZATIONS, convert, file_name
from export.version.model_card import WrittenFormat, model_card
from export.version.parity import TOLERANCE, check_parity, scores_of
from export.version.samples import read_samples, write_samples
from export.version.warmup import write_warmup
from trainers.cost.timing import interleaved_seconds
from trainers.runs.finished import load_run

FORMATS = ("saved_model", "tflite")
_SAVED_MODEL = "saved_model.pb"
_BATCHES = (1, 64)
_TIMING_SECONDS = 1.0


class Export(NamedTuple):
    """What `export_run` did.

    Attributes:
        folder: The new version.
        written: The formats in it.
        refused: Formats that were not written, with the reason.
        absence: Why the data could not be had, "" if they could.
    """

    folder: pathlib.Path
    written: list[WrittenFormat]
    refused: list[str]
    absence: str


def export_run(
    run_dir: str,
    out: str,
    *,
    formats: tuple[str, ...] = FORMATS,
    quantize: tuple[str, ...] = ("none",),
    dataset: str | None = None,
    data_dir: str | None = None,
    tolerance: float = TOLERANCE,
) -> Export:
    """Exports a run as the next version in a folder.

    Args:
        run_dir: Folder of a finished run.
        out: Folder of the versions.
        formats: "saved_model", "tflite" or both.
        quantize: LiteRT files to write: "none", "float16", "int8".
        dataset: Data to check and calibrate on; default: the run's own.
        data_dir: Where they lie; default: where the run found them.
        tolerance: Largest difference of a float32 format's scores from the
            Keras model's.

    Returns:
        An `Export`.

    Raises:
        ValueError: There is no such run, or nothing may be handed over.
        OSError: The version cannot be written; nothing is left of it.
    """
    _check_choices("formats", formats, FORMATS)
    _check_choices("quantize", quantize, QUANTIZATIONS)
    run = load_run(run_dir)
    samples = read_samples(run, dataset, data_dir)
    refused, written = [], []
    lite = list(quantize) if "tflite" in formats else []
    if "int8" in lite and samples.calibration is None:
        lite.remove("int8")
        refused.append(
            "model_int8.tflite is calibrated on training images, which "
            f"cannot be had: {samples.absence}"
        )

    def write(folder):
        (folder / LABELS).write_text("\n".join(run.class_names) + "\n")
        _write_formats(run, samples, "saved_model" in formats, lite, folder)
        written[:] = _keep_what_passes(run, samples, tolerance, folder, refused)
        (folder / "model_card.md").write_text(model_card(run, samples, written))

    try:
        folder = write_version(out, write)
    except (OSError, tf.errors.OpError) as problem:
        # The second is what TensorFlow says of a full or closed disk.
        reason = getattr(problem, "message", problem)
        raise OSError(f"Cannot write to {out}: {reason}") from problem
    return Export(folder, written, refused, samples.absence)


def _write_formats(run, samples, with_saved_model, lite, folder):
    shape = tuple(run.model.input_shape[1:])
    servable = Servable(inference(run), shape, run.class_names)
    if with_saved_model:
        servable.save(str(folder))
        extra = folder / "assets.extra"
        write_warmup(samples.images[:1], extra / "tf_serving_warmup_requests")
        write_samples(samples, run.class_names, extra / "samples")
    if lite:
        with tempfile.TemporaryDirectory() as temporary:
            servable.save_lite(temporary)
            convert(temporary, lite, samples.calibration, folder)


def _keep_what_passes(run, samples, tolerance, folder, refused):
    """Compares each format with the Keras model; removes those that fail."""
    expected = scores_of(OpenedRun(run), samples.images)
    if not np.isfinite(expected).all():
        raise ValueError(
            "The network must give finite scores. Received: NaN or infinite "
            f"ones from {run.folder.model}."
        )
    models, parities = {}, {}
    for name, model, quantization in _open_formats(folder):
        parity = check_parity(
            name, quantization, model, samples.images, samples.labels,
            expected, tolerance,
        )  # fmt: skip
        if parity.passes:
            models[name], parities[name] = model, parity
        elif name == _SAVED_MODEL:
            raise ValueError(parity.objection)
        else:
            (folder / name).unlink()
            refused.append(parity.objection)
    if not parities:
        raise ValueError(f"Nothing is left to write. {' '.join(refused)}")
    times = _milliseconds(models, samples.images)
    return [
        WrittenFormat(parity, _size(folder, name), times[name])
        for name, parity in parities.items()
    ]


def _open_formats(folder):
    """Yields name, model and quantization of what lies in a version."""
    if (folder / _SAVED_MODEL).exists():
        yield _SAVED_MODEL, OpenedSavedModel(folder), "none"
    for quantization in QUANTIZATIONS:
        path = folder / file_name(quantization)
        if path.exists():
            yield path.name, OpenedLite(path), quantization


def _milliseconds(models, images):
    times = {name: {} for name in models}
    for size in _BATCHES:
        batch = np.resize(images, (size, *images.shape[1:]))
        calls = {
            name: lambda ask=model, batch=batch: ask(batch)
            for name, model in models.items()
        }
        for name, spent in interleaved_seconds(calls, _TIMING_SECONDS).items():
            times[name][size] = 1000 * float(np.median(spent))
    return times


def _size(folder, name):
    if name != _SAVED_MODEL:
        return (folder / name).stat().st_size
    paths = [folder / name, *(folder / "variables").glob("*")]
    return sum(path.stat().st_size for path in paths)


def _check_choices(name, values, choices):
    if not values:
        raise ValueError(f"`{name}` must name at least one. Received: none.")
    for value in values:
        check_choice(name, value, choices)
