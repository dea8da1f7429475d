"""Programs that train, evaluate and measure, and what they share."""

import os


def _start_tensorflow_quietly():
    """Some of TensorFlow's start-up lines heed no log level of its own.

    They speak of oneDNN, and of a CUDA driver on machines that have none.
    TF_CPP_MIN_LOG_LEVEL=0 or 1 shows all of them.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1"):
        return
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        import tensorflow as tf

        tf.config.list_physical_devices("GPU")
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


_start_tensorflow_quietly()
