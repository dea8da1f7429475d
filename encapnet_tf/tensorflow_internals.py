"""All that the library borrows from the inside of TensorFlow.

An upgrade that takes it away fails `tests/test_internals.py` first.
"""

import tensorflow as tf
from tensorflow.python.framework import convert_to_constants
from tensorflow.python.ops import control_flow_util


def under_xla() -> bool:
    """Whether XLA compiles what is traced now."""
    return control_flow_util.GraphOrParentsInXlaContext(
        tf.compat.v1.get_default_graph()
    )


def with_constants(function):
    """Returns a concrete function with constants in place of variables.

    The public way there (`tf.compat.v1.graph_util`) needs a session.
    """
    return convert_to_constants.convert_variables_to_constants_v2(function)
