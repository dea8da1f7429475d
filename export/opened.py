"""One way to ask a model, whatever its format.

A Keras model, a SavedModel, a LiteRT and an ONNX file answer alike.
"""

import os
import pathlib

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from export.choices import DEFAULT, RECONSTRUCT
from export.graph.inference import inference, reconstruction
from export.model_path import archive_at, kind_of
from export.onnx_packages import TO_RUN, check_installed
from export.prediction import (
    OpenedModel,
    Prediction,
    prediction,
    read_labels,
    unreadable,
)
from export.version.folders import versions
from trainers.quiet import silenced_stderr
from trainers.recipe import Recipe
from trainers.runs.finished import Run, load_archive, load_run
from trainers.runs.folder import RunFolder


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
        return prediction(self.traced(tf.constant(images)))

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
            raise unreadable(path, problem) from problem
        spec = self.signature.structured_input_signature[1]["images"]
        scores = self.signature.structured_outputs["scores"]
        self.image_shape = tuple(spec.shape[1:])
        self.class_names = read_labels(path, scores.shape[-1])

    def __call__(self, images: np.ndarray) -> Prediction:
        """Answers uint8 images."""
        return prediction(self.signature(images=tf.constant(images)))

    def reconstruct(self, capsules: np.ndarray) -> np.ndarray:
        """Draws the longest capsules."""
        draw = self._loaded.signatures[RECONSTRUCT]
        return draw(capsules=tf.constant(capsules))["images"].numpy()


class OpenedLite:
    """Asks a `.tflite` file.

    Args:
        path: The file.
        num_threads: Threads to use; default: one per core it may run on.
    """

    def __init__(self, path: str | os.PathLike, num_threads: int | None = None):
        path = pathlib.Path(path)
        try:
            # Kept: the runner does not keep it.
            self._interpreter = _interpreter(
                path.read_bytes(), num_threads or len(os.sched_getaffinity(0))
            )
            self.runner = self._interpreter.get_signature_runner(DEFAULT)
        except (ValueError, RuntimeError) as problem:
            raise unreadable(path, problem) from problem
        images = self.runner.get_input_details()["images"]
        scores = self.runner.get_output_details()["scores"]
        self.image_shape = tuple(int(n) for n in images["shape"][1:])
        self.class_names = read_labels(path.parent, scores["shape"][-1])

    def __call__(self, images: np.ndarray) -> Prediction:
        """Answers uint8 images."""
        return prediction(self.runner(images=images))

    def reconstruct(self, capsules: np.ndarray) -> np.ndarray:
        """Draws the longest capsules."""
        runner = self._interpreter.get_signature_runner(RECONSTRUCT)
        return runner(capsules=capsules)["images"]


def open_model(path: str | os.PathLike) -> OpenedModel:
    """Opens a model to ask it.

    Args:
        path: A `.tflite` or `.onnx` file, a SavedModel, a folder of versions
            of it (the newest is taken), the folder of a run, a `.keras` file,
            an archive of weights, or the name of one that ships.

    Returns:
        A model.

    Raises:
        ValueError: There is no such model, it is damaged, or what runs it is
            not installed.
    """
    path = pathlib.Path(path)
    kind = kind_of(path)
    if kind == "lite":
        return OpenedLite(path)
    if kind == "archive":
        return OpenedRun(load_archive(archive_at(path)))
    if kind == "onnx":
        check_installed(TO_RUN)
        from export.opened_onnx import OpenedOnnx

        return OpenedOnnx(path)
    if kind == "saved_model":
        return OpenedSavedModel(path)
    if kind == "versions":
        found = versions(path)
        return open_model(found[max(found)])
    return OpenedRun(load_run(path) if kind == "run" else _run_of(path))


def _run_of(path):
    """The run that a .keras file belongs to, or one that stands for it."""
    folder = RunFolder(path.parent)
    if path.name == folder.model.name and folder.config.exists():
        return load_run(path.parent)
    try:
        model = keras.models.load_model(path, compile=False)
    except Exception as problem:  # whatever zip, HDF5 or a layer raises
        raise unreadable(path, problem) from problem
    names = read_labels(path.parent, model.output_shape[-1])
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
