"""Where a graph will run, as far as that is known when it is traced."""

import contextlib
import contextvars
from collections.abc import Iterator

import tensorflow as tf

from encapnet_tf.tensorflow_internals import under_xla

_elsewhere = contextvars.ContextVar("elsewhere", default=False)


@contextlib.contextmanager
def for_use_elsewhere() -> Iterator[None]:
    """Inside, graphs are traced for any machine, not for this one's CPU."""
    token = _elsewhere.set(True)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def on_this_cpu() -> bool:
    """Whether what is traced now will run on this machine's CPU as it is."""
    return not (_elsewhere.get() or on_gpu() or under_xla())


def on_gpu() -> bool:
    """Whether there is a GPU to run on."""
    return bool(tf.config.list_logical_devices("GPU"))
