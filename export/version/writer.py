"""The files of a version: written, checked, timed and described."""

import os
import pathlib
import tempfile
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from export.choices import QUANTIZATIONS
from export.graph.inference import inference, reconstruction
from export.graph.servable import Servable
from export.opened import LABELS, OpenedLite, OpenedRun, OpenedSavedModel
from export.progress import StageProgress
from export.version.folders import write_version
from export.version.lite import convert, file_name
from export.version.model_card import CardFacts, WrittenFormat, model_card
from export.version.parity import Drawn, check_parity, scores_of
from export.version.samples import Samples, write_samples
from export.version.warmup import write_warmup
from trainers.cost.timing import interleaved_seconds
from trainers.runs.finished import Run

_SAVED_MODEL = "saved_model.pb"
READING = "reading the run and its data"
_FREEZING = "folding the batch norms"
_CONVERTING = "converting to LiteRT"
_ASKING = "asking the Keras model"
_TIMING = "timing the answers"
_BATCHES = (1, 64)
_TIMING_SECONDS = 1.0
# Reconstructions that are compared.
_DRAWN = 100


def stages(with_saved_model: bool, lite: list[str]) -> dict[str, float]:
    """Returns the stages of an export and the seconds they may take.

    As measured on two cores, `encapnet_small` at 32×32.
    """
    names = [_SAVED_MODEL] * with_saved_model + [file_name(q) for q in lite]
    seconds = {READING: 4, _FREEZING: 5}
    if with_saved_model:
        seconds[f"writing {_SAVED_MODEL}"] = 5
    if lite:
        seconds[_CONVERTING] = 8 + 3 * len(lite) + 6 * ("int8" in lite)
    seconds[_ASKING] = 5
    seconds |= {f"checking {name}": 2 for name in names}
    return seconds | {_TIMING: len(_BATCHES) * _TIMING_SECONDS * len(names)}


class Wanted(NamedTuple):
    """What is to be written.

    Attributes:
        saved_model: Whether a SavedModel is.
        lite: The quantizations of the LiteRT files.
        tolerance: Largest difference of a float32 format's scores from the
            Keras model's.
        licence: For the card, None where it is not stated.
        decoder: Whether the decoder goes along.
    """

    saved_model: bool
    lite: list[str]
    tolerance: float
    licence: str | None
    decoder: bool


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
        self._write_formats(folder)
        self._ask_keras()
        self.written = self._keep_what_passes(folder)

    def write_card(self, folder: pathlib.Path, number: int) -> None:
        """Writes the model card."""
        facts = CardFacts(number, self._wanted.licence, self._scores)
        card = model_card(self._run, self._samples, self.written, facts)
        (folder / "model_card.md").write_text(card)

    def _write_formats(self, folder):
        run, samples = self._run, self._samples
        self._progress.begin(_FREEZING)
        shape = tuple(run.model.input_shape[1:])
        servable = Servable(
            inference(run),
            shape,
            run.class_names,
            reconstruction(run) if self._wanted.decoder else None,
        )
        if self._wanted.saved_model:
            self._progress.begin(f"writing {_SAVED_MODEL}")
            servable.save(str(folder))
            extra = folder / "assets.extra"
            requests = extra / "tf_serving_warmup_requests"
            write_warmup(samples.images[:1], requests)
            write_samples(samples, run.class_names, extra / "samples")
        if self._wanted.lite:
            self._progress.begin(_CONVERTING)
            with tempfile.TemporaryDirectory() as temporary:
                servable.save_lite(temporary)
                lite = self._wanted.lite
                convert(temporary, lite, samples.calibration, folder)

    def _ask_keras(self):
        self._progress.begin(_ASKING)
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
            self._progress.begin(f"checking {name}")
            parity = check_parity(
                name, quantization, model, samples.images, samples.labels,
                self._scores, self._wanted.tolerance, self._drawn,
            )  # fmt: skip
            if parity.passes:
                models[name], parities[name] = model, parity
            elif name == _SAVED_MODEL:
                raise ValueError(parity.objection)
            else:
                (folder / name).unlink()
                self.refused.append(parity.objection)
        if not parities:
            reasons = " ".join(self.refused)
            raise ValueError(f"Nothing is left to write. {reasons}")
        self._progress.begin(_TIMING)
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
