"""One version of a model: a folder with a number for its name."""

import pathlib

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.protobuf import saved_model_pb2

from export.choices import DEFAULT
from export.serve.limits import Limits, Refusal
from export.serve.model.drawn_samples import style_of
from export.serve.model.signatures import (
    IMAGE_BYTES,
    DecodingSignature,
    signatures_of,
)

_MAX_SAMPLES = 10


class LoadedVersion:
    """A SavedModel, loaded and warmed up.

    Args:
        folder: The version folder; its name is the version's number.
        limits: Of batches and images.
    """

    def __init__(self, folder: pathlib.Path, limits: Limits):
        self.number = int(folder.name)
        # A graph and a session of its own end with it. In TensorFlow's eager
        # runtime a batch function would stay in memory, weights and all.
        with tf.Graph().as_default() as graph:
            loaded = tf.saved_model.load(str(folder))
            self.signatures = signatures_of(loaded, limits)
            start = (
                tf.compat.v1.global_variables_initializer(),
                tf.compat.v1.tables_initializer(),
            )
        if not self.signatures:
            raise ValueError(
                "A version needs at least one signature. "
                f"Received: none in {folder}. Export it again."
            )
        self._session = tf.compat.v1.Session(graph=graph)
        self._session.run(start)
        self.signature_defs = _signature_defs(folder)
        self.labels = _labels(folder)
        self.samples = _samples(folder)
        self.drawing = style_of(self.samples.values())
        for signature in self.signatures.values():
            signature.bind(self._session)
            signature.warm_up([1, limits.max_batch])

    def decoded(self, file: bytes) -> np.ndarray:
        """Returns the image `(H, W, C)` that the network is given.

        Args:
            file: An encoded image.

        Raises:
            Refusal: It cannot be decoded, or the model takes no files.
        """
        for signature in self.signatures.values():
            if isinstance(signature, DecodingSignature):
                files = np.array([file], object)
                ((image,),) = signature.prepare({IMAGE_BYTES: files}).values()
                return image
        raise Refusal(404, "This model does not take files.")

    @property
    def image_shape(self) -> list[int] | None:
        """Height, width and channels, where the model takes images."""
        default = self.signatures.get(DEFAULT)
        shapes = (
            [spec.shape for spec in default.inputs.values()] if default else []
        )
        if len(shapes) == 1 and shapes[0].rank == 4:
            return shapes[0].as_list()[1:]
        return None


def fingerprint(folder: pathlib.Path) -> tuple:
    """Returns what changes when any file of a version does."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stats = [(path, path.stat()) for path in files]
    return tuple((str(p), s.st_size, s.st_mtime_ns) for p, s in stats)


def _signature_defs(folder):
    """The signatures as TensorFlow Serving's metadata shows them."""
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    return {
        key: json_format.MessageToDict(
            value,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for key, value in saved.meta_graphs[0].signature_def.items()
    }


def _labels(folder):
    path = folder / "labels.txt"
    return path.read_text().splitlines() if path.exists() else []


def _samples(folder):
    """Images of the training data, by file name, in the exporter's order."""
    paths = (folder / "assets.extra" / "samples").glob("[0-9]*_*.png")
    ordered = sorted(paths, key=lambda p: (len(p.name.split("_")[0]), p.name))
    return {path.name: path.read_bytes() for path in ordered[:_MAX_SAMPLES]}
