"""The loops of a TensorFlow graph: what their bodies do, and how often."""

import functools
from collections.abc import Iterable

import tensorflow as tf


def is_loop(op: tf.Operation) -> bool:
    """Whether the operation runs a body again and again."""
    return op.type in ("While", "StatelessWhile")


@functools.cache
def body(op: tf.Operation) -> tf.Graph:
    """Returns the graph of a loop's body."""
    return op.graph._get_function(op.get_attr("body").name).graph


def num_turns(op: tf.Operation) -> int:
    """Returns how often a loop runs; 1 where only running it tells."""
    # TensorFlow's loops count their turns first, then know their most.
    most = tf.get_static_value(op.inputs[1])
    return 1 if most is None or most < 0 else int(most)


def carried_input(op: tf.Operation, number: int) -> tf.Tensor | None:
    """Returns the input that a loop hands out unchanged as this output."""
    graph = body(op)
    unchanged = _named(graph.outputs[number]) is graph.inputs[number]
    return op.inputs[number] if unchanged else None


def listed(op: tf.Operation, number: int) -> Iterable[tf.Tensor]:
    """Returns what a turn of a loop adds to the list in this output."""
    last = _named(body(op).outputs[number]).op
    return last.inputs[2:] if last.type == "TensorListSetItem" else ()


def _named(tensor):
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor
