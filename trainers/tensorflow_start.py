"""The start of TensorFlow, without the lines that it writes there."""

import contextlib
import os

from trainers.quiet import silenced_stderr


def start_tensorflow(gpus: bool = True) -> None:
    """Starts TensorFlow, which takes seconds; call it once flags are checked.

    Some of its start-up lines heed no log level of its own. They speak of
    oneDNN, and of a CUDA driver on machines that have none.
    TF_CPP_MIN_LOG_LEVEL=0 or 1 shows all of them.

    Args:
        gpus: Whether this process computes on the GPUs.
    """
    level = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    loud = contextlib.nullcontext()
    with loud if level in ("0", "1") else silenced_stderr():
        import tensorflow as tf

        tf.config.list_physical_devices("GPU")
    if not gpus:
        tf.config.set_visible_devices([], "GPU")
