"""One way to ask a model, whatever its format.

A Keras model, a SavedModel and a LiteRT file answer alike.
"""

import os
import pathlib
from typing import NamedTuple, Protocol

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from export.choices import DEFAULT, RECONSTRUCT
from export.graph.inference import inference, reconstruction
from export.model_path import archive_at, kind_of
from export.version.folders import versions
from trainers.quiet import silenced_stderr
from trainers.recipe import Recipe
from trainers.runs.finished import Run, load_archive, load_run
from trainers.runs.folder import RunFolder

LABELS = "labels.txt"


class Prediction(NamedTuple):
    """What a model says of a batch of images.

    Attributes:
        scores: Lengths of the class capsules, or probabilities `(B, M)`.
        capsules: The class capsules `(B, M, D)`, None where there are none.
    """

    scores: np.ndarray
    capsules: np.ndarray | None


class OpenedModel(Protocol):
    """A model that can be asked.

    Attributes:
        image_shape: `(H, W, C)` of the images it takes.
        class_names: One per score.
    """

    image_shape: tuple[int, int, int]
    class_names: tuple[str, ...]

    def __call__(self, images: np.ndarray) -> Prediction:
        """Answers uint8 images `(B, H, W, C)`, any B."""

    def reconstruct(self, capsules: np.ndarray) -> np.ndarray:
        """Draws the longest of the capsules `(B, M, D)`, with a decoder."""


class OpenedRun:
    """Asks a run's Keras model.

    Args:
        run: The run.
    """

    def __init__(self, run: Run):
        self.image_shape = tuple(run.model.input_shape[1:])
        self.class_names = run.class_names
        self._run = run
        infer = inference(run)
        self.traced = tf.function(
            lambda images: infer(tf.cast(images, tf.float32) / 255.0),
            input_signature=[
                tf.TensorSpec((None, *self.image_shape), tf.uint8)
            ],
            jit_compile=False,
        )

    def __call__(self, images: np.ndarray) -> Prediction:
        """Answers uint8 images."""
        return _prediction(self.traced(tf.constant(images)))

    def reconstruct(self, capsules: np.ndarray) -> np.ndarray:
        """Draws the longest capsules."""
        return reconstruction(self._run)(capsules)["images"].numpy()


class OpenedSavedModel:
    """Asks a SavedModel that the exporter wrote.

    Args:
        path: Its folder, the one with `saved_model.pb`.
    """

    def __init__(self, path: str | os.PathLike):
        path = pathlib.Path(path)
        try:
            # Kept, or its functions would be lost with it.
            self._loaded = tf.saved_model.load(str(path))
            self.signature = self._loaded.signatures[DEFAULT]
        except Exception as problem:
            raise _unreadable(path, problem) from problem
        spec = self.signature.structured_input_signature[1]["images"]
        scores = self.signature.structured_outputs["scores"]
        self.image_shape = tuple(spec.shape[1:])
        self.class_names = _read_labels(path, scores.shape[-1])

    def __call__(self, images: np.ndarray) -> Prediction:
        """Answers uint8 images."""
        return _prediction(self.signature(images=tf.constant(images)))

    def reconstruct(self, capsules: np.ndarray) -> np.ndarray:
        """Draws the longest capsules."""
        draw = self._loaded.signatures[RECONSTRUCT]
        return draw(capsules=tf.constant(capsules))["images"].numpy()


class OpenedLite:
    """Asks a `.tflite` file.

    Args:
        path: The file.
        num_threads: Threads to use; default: one per core.
    """

    def __init__(self, path: str | os.PathLike, num_threads: int | None = None):
        path = pathlib.Path(path)
        try:
            # Kept: the runner does not keep it.
            self._interpreter = _interpreter(
                path.read_bytes(), num_threads or os.cpu_count()
            )
            self.runner = self._interpreter.get_signature_runner(DEFAULT)
        except (ValueError, RuntimeError) as problem:
            raise _unreadable(path, problem) from problem
        images = self.runner.get_input_details()["images"]
        scores = self.runner.get_output_details()["scores"]
        self.image_shape = tuple(int(n) for n in images["shape"][1:])
        self.class_names = _read_labels(path.parent, scores["shape"][-1])

    def __call__(self, images: np.ndarray) -> Prediction:
        """Answers uint8 images."""
        return _prediction(self.runner(images=images))

    def reconstruct(self, capsules: np.ndarray) -> np.ndarray:
        """Draws the longest capsules."""
        runner = self._interpreter.get_signature_runner(RECONSTRUCT)
        return runner(capsules=capsules)["images"]


def open_model(path: str | os.PathLike) -> OpenedModel:
    """Opens a model to ask it.

    Args:
        path: A `.tflite` file, a SavedModel, a folder of versions of it (the
            newest is taken), the folder of a run, a `.keras` file, an archive
            of weights, or the name of one that ships.

    Returns:
        A model.

    Raises:
        ValueError: There is no such model, or it is damaged.
    """
    path = pathlib.Path(path)
    kind = kind_of(path)
    if kind == "lite":
        return OpenedLite(path)
    if kind == "archive":
        return OpenedRun(load_archive(archive_at(path)))
    if kind == "saved_model":
        return OpenedSavedModel(path)
    if kind == "versions":
        found = versions(path)
        return OpenedSavedModel(found[max(found)])
    return OpenedRun(load_run(path) if kind == "run" else _run_of(path))


def _run_of(path):
    """The run that a .keras file belongs to, or one that stands for it."""
    folder = RunFolder(path.parent)
    if path.name == folder.model.name and folder.config.exists():
        return load_run(path.parent)
    try:
        model = keras.models.load_model(path, compile=False)
    except Exception as problem:  # whatever zip, HDF5 or a layer raises
        raise _unreadable(path, problem) from problem
    names = _read_labels(path.parent, model.output_shape[-1])
    # How it was trained is not known: images are seen whole.
    return Run(folder, Recipe(), model, {"class_names": list(names)})


def _interpreter(content, num_threads):
    # It logs its delegate, once, when it first allocates.
    with silenced_stderr():
        interpreter = Interpreter(
            model_content=content, num_threads=num_threads
        )
        interpreter.allocate_tensors()
    return interpreter


def _prediction(outputs):
    arrays = {name: np.asarray(value) for name, value in outputs.items()}
    return Prediction(arrays["scores"], arrays.get("capsules"))


def _read_labels(folder, count):
    """Names from the file beside a model; numbers where there is none."""
    path = folder / LABELS
    if not path.is_file():
        return tuple(str(label) for label in range(count))
    names = tuple(path.read_text().splitlines())
    if len(names) != count:
        raise ValueError(
            f"{path} must name the {count} classes of the model beside it. "
            f"Received: {len(names)} lines."
        )
    return names


def _unreadable(path, problem):
    reason = str(problem).strip().splitlines() or [type(problem).__name__]
    return ValueError(
        f"{path} is damaged, or was not written by this project. "
        f"Received: {reason[0][:200]}"
    )
