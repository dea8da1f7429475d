"""From a run's folder to a version that others can use."""

import pathlib
from typing import NamedTuple

from encapnet_tf.checks import check_choice
from export.choices import (
    DEFAULT_FORMATS,
    FORMATS,
    QUANTIZATIONS,
    TOLERANCE,
)
from export.onnx_packages import TO_WRITE, check_installed
from export.version.model_card import WrittenFormat
from export.version.samples import read_samples
from export.version.stages import READING, Wanted, stages
from export.version.writer import VersionWriter
from trainers.progress import StageProgress
from trainers.runs.finished import load_run


class Export(NamedTuple):
    """What `export_run` did.

    Attributes:
        folder: The new version.
        written: The formats in it.
        refused: Formats that were not written, with the reason.
        absence: Why the data could not be read, "" if they could.
    """

    folder: pathlib.Path
    written: list[WrittenFormat]
    refused: list[str]
    absence: str


def export_run(
    run_dir: str,
    out: str,
    *,
    formats: tuple[str, ...] = DEFAULT_FORMATS,
    quantize: tuple[str, ...] = ("none",),
    dataset: str | None = None,
    data_dir: str | None = None,
    tolerance: float = TOLERANCE,
    licence: str | None = None,
    with_decoder: bool = False,
) -> Export:
    """Exports a run as the next version in a folder.

    Args:
        run_dir: Folder of a finished run.
        out: Folder of the versions.
        formats: What to write: "saved_model", "tflite", "onnx".
        quantize: LiteRT files to write: "none", "float16", "int8".
        dataset: Data to check and calibrate on; default: the run's own.
        data_dir: Where they lie; default: where the run found them.
        tolerance: Largest difference of a float32 format's scores from the
            Keras model's.
        licence: Under which the model is handed on, for its card.
        with_decoder: Whether the decoder goes along, as a signature; in ONNX
            as a file.

    Returns:
        An `Export`.

    Raises:
        ValueError: There is no such run, nothing may be handed over, or ONNX
            is asked for and not installed.
        OSError: The version cannot be written; nothing is left of it.
    """
    _check_choices("formats", formats, FORMATS)
    _check_choices("quantize", quantize, QUANTIZATIONS)
    if "onnx" in formats:
        check_installed(TO_WRITE)
    lite = list(quantize) if "tflite" in formats else []
    wanted = Wanted(
        "saved_model" in formats, lite, "onnx" in formats, tolerance, licence,
        with_decoder,
    )  # fmt: skip
    progress = StageProgress(stages(wanted))
    with progress.shown():
        progress.begin(READING)
        run = load_run(run_dir)
        samples = read_samples(run, dataset, data_dir)
        refused = []
        if "int8" in lite and samples.calibration is None:
            lite.remove("int8")
            refused.append(
                "model_int8.tflite is calibrated on training images, which "
                f"cannot be had: {samples.absence}"
            )
        writer = VersionWriter(run, samples, wanted, progress)
        folder = writer.write_next(out)
    refused += writer.refused
    return Export(folder, writer.written, refused, samples.absence)


def _check_choices(name, values, choices):
    if not values:
        raise ValueError(f"`{name}` must name at least one. Received: none.")
    for value in values:
        check_choice(name, value, choices)
