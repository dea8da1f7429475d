"""The way to ask an ONNX file; its runtime is an optional package."""

import functools
import os
import pathlib

import numpy as np
import onnxruntime

from export.choices import ONNX_FILES, RECONSTRUCT
from export.prediction import Prediction, prediction, read_labels, unreadable


class OpenedOnnx:
    """Asks a `.onnx` file.

    Args:
        path: The file; its decoder, where it has one, lies beside it.
        num_threads: Threads to use; default: one per core it may run on.
    """

    def __init__(self, path: str | os.PathLike, num_threads: int | None = None):
        path = pathlib.Path(path)
        self._decoder_path = path.with_name(ONNX_FILES[RECONSTRUCT])
        self._num_threads = num_threads or len(os.sched_getaffinity(0))
        self._session = _session(path, self._num_threads)
        shapes = {
            value.name: value.shape
            for value in (
                *self._session.get_inputs(), *self._session.get_outputs()
            )
        }  # fmt: skip
        if not {"images", "scores"} <= set(shapes):
            raise unreadable(path, f"it has {', '.join(shapes)}")
        self.image_shape = tuple(shapes["images"][1:])
        self.class_names = read_labels(path.parent, shapes["scores"][-1])

    def __call__(self, images: np.ndarray) -> Prediction:
        """Answers uint8 images."""
        return prediction(_outputs(self._session, images=images))

    def reconstruct(self, capsules: np.ndarray) -> np.ndarray:
        """Draws the longest capsules."""
        return _outputs(self._decoder, capsules=capsules)["images"]

    @functools.cached_property
    def _decoder(self):
        return _session(self._decoder_path, self._num_threads)


def _session(path, num_threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            path.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as problem:  # its own classes have no common one
        raise unreadable(path, problem) from problem


def _outputs(session, **inputs):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))
