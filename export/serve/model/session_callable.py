"""What is borrowed from TensorFlow's sessions: their fast callables."""

from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2


def session_callable(
    session: tf.compat.v1.Session,
    feeds: Iterable[tf.Tensor],
    fetches: Iterable[tf.Tensor],
) -> Callable[..., list[np.ndarray]]:
    """Returns a function from the values of some tensors to those of others.

    The public `session.make_callable` takes ten times as long for a call.

    Args:
        session: Runs the graph of the tensors.
        feeds: What the function takes, in order.
        fetches: What it returns, in order.
    """
    return session._make_callable_from_options(
        config_pb2.CallableOptions(
            feed=[tensor.name for tensor in feeds],
            fetch=[tensor.name for tensor in fetches],
        )
    )
