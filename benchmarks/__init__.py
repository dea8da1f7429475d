"""Timings beside peers that are not dependencies."""

import multiprocessing

from trainers.tensorflow_start import start_tensorflow

# As the programs do. A contestant's process starts its own framework.
if multiprocessing.parent_process() is None:
    start_tensorflow()
