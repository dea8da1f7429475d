"""Multiply-adds and scratch memory of a TensorFlow operation, by its shapes."""

import math

import tensorflow as tf

from trainers.cost import graph_loops


def num_bytes(tensor: tf.Tensor) -> int:
    """Returns the size of a tensor; 0 where its shape is not known.

    Of a list that a loop made: the size of all that is in it.
    """
    op = tensor.op
    if tensor.dtype == tf.variant and graph_loops.is_loop(op):
        items = graph_loops.listed(op, tensor.value_index)
        return graph_loops.num_turns(op) * sum(map(num_bytes, items))
    if not tensor.shape.is_fully_defined():
        return 0
    return tensor.shape.num_elements() * tensor.dtype.size


def multiply_adds(op: tf.Operation) -> int:
    """Returns the multiply-adds of a product or convolution, 0 of the rest.

    A loop has those of all its turns.
    """
    kind, inputs = op.type, op.inputs
    if graph_loops.is_loop(op):
        inner = graph_loops.body(op).get_operations()
        return graph_loops.num_turns(op) * sum(map(multiply_adds, inner))
    if kind == "Einsum":
        return _einsum_multiply_adds(op)
    if kind in ("MatMul", "BatchMatMulV2"):
        adjoint = "transpose_a" if kind == "MatMul" else "adj_x"
        summed = inputs[0].shape[-2 if op.get_attr(adjoint) else -1]
        return op.outputs[0].shape.num_elements() * summed
    # A kernel is (k, k, channels per group, filters): each entry of the
    # convolution's output takes k · k · channels of the group.
    if kind in ("Conv2D", "DepthwiseConv2dNative"):
        maps, kernel = op.outputs[0], inputs[1]
    elif kind.endswith("BackpropInput"):
        maps, kernel = inputs[2], inputs[1]
    elif kind.endswith("BackpropFilter"):
        maps, kernel = inputs[2], op.outputs[0]
    else:
        return 0
    height, width, channels, _ = kernel.shape
    per_entry = height * width * (1 if "Depthwise" in kind else channels)
    return maps.shape.num_elements() * per_entry


def _einsum_labels(op):
    equation = op.get_attr("equation").decode()
    left, right = equation.split("->")
    return left.split(","), right


def _einsum_multiply_adds(op):
    sizes = {}
    for labels, tensor in zip(_einsum_labels(op)[0], op.inputs, strict=True):
        sizes |= dict(zip(labels, tensor.shape.as_list(), strict=True))
    return math.prod(sizes.values())


def scratch_bytes(op: tf.Operation) -> int:
    """Returns the scratch memory it takes: an einsum's transposed copies."""
    if op.type != "Einsum" or len(op.inputs) != 2:
        return 0
    (left, right), result = _einsum_labels(op)
    order = "".join(dict.fromkeys(left + right))
    batch = [c for c in order if c in left and c in right and c in result]
    summed = [c for c in order if c not in batch and c not in result]
    product = list(batch)
    scratch = 0
    for labels, tensor in zip((left, right), op.inputs, strict=True):
        free = [c for c in order if c in labels and c in result]
        free = [c for c in free if c not in batch]
        inner = [c for c in summed if c in labels]
        product += free
        if list(labels) not in (batch + free + inner, batch + inner + free):
            scratch += num_bytes(tensor)
    if product != list(result):
        scratch += num_bytes(op.outputs[0])
    return scratch
