"""The numbers of a run for TensorBoard."""

import functools
import pathlib
from typing import Any

import tensorflow as tf


class TensorboardLog:
    """Writes one point per epoch and number.

    Args:
        folder: Made where it is missing, with the first row.
    """

    def __init__(self, folder: pathlib.Path):
        self._folder = folder

    @functools.cached_property
    def _writer(self):
        return tf.summary.create_file_writer(str(self._folder))

    def write(self, row: dict[str, Any]) -> None:
        """Writes the row of an epoch."""
        with self._writer.as_default():
            for name, value in row.items():
                tf.summary.scalar(name, value, step=row["epoch"])
        self._writer.flush()
