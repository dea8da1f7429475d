"""The files of a version: written, checked, timed and described."""

import os
import pathlib
import tempfile

import numpy as np
import tensorflow as tf

from export.choices import (
    CARD,
    CONFIG,
    LABELS,
    ONNX_FILES,
    QUANTIZATIONS,
    RECONSTRUCT,
)
from export.graph.inference import inference, reconstruction
from export.graph.servable import Servable
from export.opened import OpenedLite, OpenedRun, OpenedSavedModel
from export.version import hub
from export.version.folders import write_version
from export.version.lite import convert, file_name
from export.version.model_card import CardFacts, WrittenFormat, model_card
from export.version.parity import Drawn, check_parity, scores_of
from export.version.samples import Samples, write_samples
from export.version.stages import (
    ASKING,
    BATCHES,
    CHECKING,
    FREEZING,
    ONNX,
    SAVED_MODEL,
    TIMING,
    TIMING_SECONDS,
    TO_LITE,
    TO_ONNX,
    WRITING,
    Wanted,
)
from export.version.warmup import write_warmup
from trainers.cost.timing import interleaved_seconds
from trainers.files import write_json
from trainers.progress import StageProgress
from trainers.runs.finished import Run

# What belongs to a format beside the file it is named after.
_MORE_FILES = {SAVED_MODEL: "variables/*", ONNX: ONNX_FILES[RECONSTRUCT]}
# Reconstructions that are compared.
_DRAWN = 100


class VersionWriter:
    """Writes the files of a version, stage by stage.

    Args:
        run: The run.
        samples: Images to check on.
        wanted: What is to be written.
        progress: Is told of the stages.

    Attributes:
        written: The formats that were written and pass the checks.
        refused: Why others were not kept.
    """

    def __init__(
        self,
        run: Run,
        samples: Samples,
        wanted: Wanted,
        progress: StageProgress,
    ):
        self.written: list[WrittenFormat] = []
        self.refused: list[str] = []
        self._run = run
        self._samples = samples
        self._wanted = wanted
        self._progress = progress

    def write_next(self, out: str | os.PathLike) -> pathlib.Path:
        """Writes the next version in a folder and returns where it is.

        Raises:
            OSError: It cannot be written; nothing is left of it.
        """
        try:
            return write_version(out, self.write, self.write_card)
        except (OSError, tf.errors.OpError) as problem:
            # The second is what TensorFlow raises on a full or read-only disk.
            reason = getattr(problem, "message", problem)
            raise OSError(f"Cannot write to {out}: {reason}") from problem

    def write(self, folder: pathlib.Path) -> None:
        """Writes the formats and labels; keeps what passes the checks."""
        names = self._run.class_names
        (folder / LABELS).write_text("\n".join(names) + "\n")
        write_json(folder / CONFIG, hub.config(self._run))
        self._write_formats(folder)
        self._ask_keras()
        self.written = self._keep_what_passes(folder)

    def write_card(self, folder: pathlib.Path, number: int) -> None:
        """Writes the model card."""
        facts = CardFacts(number, self._wanted.licence, self._scores)
        card = model_card(self._run, self._samples, self.written, facts)
        (folder / CARD).write_text(card)

    def _write_formats(self, folder):
        run, samples = self._run, self._samples
        self._progress.begin(FREEZING)
        shape = tuple(run.model.input_shape[1:])
        servable = Servable(
            inference(run),
            shape,
            run.class_names,
            reconstruction(run) if self._wanted.decoder else None,
        )
        if self._wanted.saved_model:
            self._progress.begin(WRITING)
            servable.save(str(folder))
            extra = folder / "assets.extra"
            requests = extra / "tf_serving_warmup_requests"
            write_warmup(samples.images[:1], requests)
            write_samples(samples, run.class_names, extra / "samples")
        if self._wanted.lite:
            self._progress.begin(TO_LITE)
            with tempfile.TemporaryDirectory() as temporary:
                servable.save_lite(temporary)
                lite = self._wanted.lite
                convert(temporary, lite, samples.calibration, folder)
        if self._wanted.onnx:
            self._progress.begin(TO_ONNX)
            # Optional, so imported only when it is asked for.
            from export.version import onnx_files

            onnx_files.convert(servable, folder)

    def _ask_keras(self):
        self._progress.begin(ASKING)
        model, images = OpenedRun(self._run), self._samples.images
        self._scores = scores = scores_of(model, images)
        if not np.isfinite(scores).all():
            raise ValueError(
                "The network must give finite scores. Received: NaN or "
                f"infinite ones from {self._run.folder.model}."
            )
        self._drawn = None
        if self._wanted.decoder:
            capsules = model(images[:_DRAWN]).capsules
            self._drawn = Drawn(capsules, model.reconstruct(capsules))

    def _keep_what_passes(self, folder):
        """Compares formats with the Keras model; removes those that fail."""
        samples, models, parities = self._samples, {}, {}
        for name, model, quantization in _open_formats(folder):
            self._progress.begin(f"{CHECKING} {name}")
            parity = check_parity(
                name, quantization, model, samples.images, samples.labels,
                self._scores, self._wanted.tolerance, self._drawn,
            )  # fmt: skip
            if parity.passes:
                models[name], parities[name] = model, parity
            elif name == SAVED_MODEL:
                raise ValueError(parity.objection)
            else:
                for path in _files(folder, name):
                    path.unlink()
                self.refused.append(parity.objection)
        if not parities:
            reasons = " ".join(self.refused)
            raise ValueError(f"Nothing is left to write. {reasons}")
        self._progress.begin(TIMING)
        times = _milliseconds(models, samples.images)
        return [
            WrittenFormat(
                parity,
                sum(path.stat().st_size for path in _files(folder, name)),
                times[name],
            )
            for name, parity in parities.items()
        ]


def _open_formats(folder):
    """Yields name, model and quantization of what lies in a version."""
    if (folder / SAVED_MODEL).exists():
        yield SAVED_MODEL, OpenedSavedModel(folder), "none"
    for quantization in QUANTIZATIONS:
        path = folder / file_name(quantization)
        if path.exists():
            yield path.name, OpenedLite(path), quantization
    if (folder / ONNX).exists():
        from export.opened_onnx import OpenedOnnx

        yield ONNX, OpenedOnnx(folder / ONNX), "none"


def _milliseconds(models, images):
    times = {name: {} for name in models}
    for size in BATCHES:
        batch = np.resize(images, (size, *images.shape[1:]))
        calls = {
            name: lambda ask=model, batch=batch: ask(batch)
            for name, model in models.items()
        }
        for name, spent in interleaved_seconds(calls, TIMING_SECONDS).items():
            times[name][size] = 1000 * float(np.median(spent))
    return times


def _files(folder, name):
    """The files of a format, the one it is named after first."""
    more = folder.glob(_MORE_FILES[name]) if name in _MORE_FILES else ()
    return [folder / name, *more]
