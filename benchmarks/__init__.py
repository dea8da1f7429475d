"""Timings beside peers that are not dependencies."""

import trainers  # noqa: F401, starts TensorFlow as the programs do
