"""Timings beside peers that are not dependencies."""

from trainers.tensorflow_start import start_tensorflow

# As the programs do.
start_tensorflow()
