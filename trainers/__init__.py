"""Programs that train, evaluate and measure, and what they share."""

import os

from trainers.quiet import silenced_stderr

# TensorFlow takes oneDNN by itself only on CPUs with AVX-512's dot products; on
# others training is 1.1 to 1.3 times as fast with it (measured on AVX2).
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def _start_tensorflow_quietly():
    """Some of TensorFlow's start-up lines heed no log level of its own.

    They speak of oneDNN, and of a CUDA driver on machines that have none.
    TF_CPP_MIN_LOG_LEVEL=0 or 1 shows all of them.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1"):
        return
    with silenced_stderr():
        import tensorflow as tf

        tf.config.list_physical_devices("GPU")


_start_tensorflow_quietly()
