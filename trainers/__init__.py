"""Programs that train, evaluate and measure, and what they share."""

import os


def _import_tensorflow_quietly():
    """Some of TensorFlow's start-up lines heed no log level of its own."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        import tensorflow  # noqa: F401
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


_import_tensorflow_quietly()
