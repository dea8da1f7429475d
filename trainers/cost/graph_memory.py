"""Memory of a TensorFlow graph, read off its shapes.

Nothing here runs an operation: a graph traced on `tf.TensorSpec`s is enough.
"""

import collections
import heapq
import itertools
from collections.abc import Collection, Iterable

import tensorflow as tf

from trainers.cost import graph_loops
from trainers.cost.op_cost import num_bytes, scratch_bytes

# These pass their input's buffer on under another shape or name.
_SAME_BUFFER = {
    "ExpandDims",
    "Identity",
    "IdentityN",
    "PreventGradient",
    "Reshape",
    "Squeeze",
    "StopGradient",
}
# These overwrite an input that nothing else needs.
_IN_PLACE = {
    "Abs", "AddN", "AddV2", "DivNoNan", "Exp", "Log", "Maximum", "Minimum",
    "Mul", "Neg", "RealDiv", "Relu", "ReluGrad", "Rsqrt", "RsqrtGrad",
    "SelectV2", "Sigmoid", "Sign", "Softmax", "Sqrt", "Square", "Sub",
}  # fmt: skip
# These look at a shape, which the runtime knows without the values.
_SHAPE_ONLY = {
    "BroadcastGradientArgs",
    "Rank",
    "Shape",
    "ShapeN",
    "Size",
    "ZerosLike",
}


def needed_ops(graph: tf.Graph) -> list[tf.Operation]:
    """Returns the operations that the graph's outputs depend on, in order."""
    needed = set()
    waiting = [tensor.op for tensor in graph.outputs]
    while waiting:
        op = waiting.pop()
        if op not in needed:
            needed.add(op)
            waiting.extend(tensor.op for tensor in op.inputs)
    return [op for op in graph.get_operations() if op in needed]


def buffer_maker(tensor: tf.Tensor) -> tf.Tensor:
    """Returns the tensor in whose buffer this one lies."""
    while True:
        source = _shared_input(tensor.op, tensor.value_index)
        if source is None:
            return tensor
        tensor = source


def kept_tensors(
    forward: Collection[tf.Operation],
    backward: Iterable[tf.Operation],
    apart: Collection = (),
) -> list[tf.Tensor]:
    """Returns what the backward pass reads of the forward pass.

    Each buffer is there once, as the tensor that was made in it; constants
    and the tensors counted apart are left out.
    """
    forward = set(forward)
    kept = {}
    for op in backward:
        for tensor in op.inputs if op.type not in _SHAPE_ONLY else ():
            maker = buffer_maker(tensor)
            if maker.op in forward and maker.op.type != "Const":
                kept[maker.ref()] = maker
    return [tensor for ref, tensor in kept.items() if ref not in apart]


def peak_bytes(
    ops: list[tf.Operation], apart: Collection = (), parallel_ops: int = 1
) -> int:
    """Returns the largest sum of live buffers while the graph runs.

    Operations start in the order in which their inputs are ready, as
    TensorFlow's executor takes them, and last as long as the bytes they touch.
    A buffer lives until its last reader is done.

    Args:
        ops: All operations that run.
        apart: References of tensors whose memory is counted by others.
        parallel_ops: How many operations run at a time.
    """
    buffers = _Buffers(ops, apart)
    missing = {op: len({t.ref() for t in op.inputs}) for op in ops}
    ready = collections.deque(op for op in ops if not missing[op])
    running, order, now = [], itertools.count(), 0
    while ready or running:
        while ready and len(running) < parallel_ops:
            op = ready.popleft()
            scratch = buffers.start(op)
            touched = scratch + sum(map(num_bytes, (*op.inputs, *op.outputs)))
            heapq.heappush(running, (now + touched, next(order), op, scratch))
        now, _, op, scratch = heapq.heappop(running)
        buffers.finish(op, scratch)
        for reader in _readers(op):
            if reader in missing:
                missing[reader] -= 1
                if not missing[reader]:
                    ready.append(reader)
    return buffers.peak


def _readers(op):
    """The readers of an operation, once for each of its outputs they read."""
    for output in op.outputs:
        yield from dict.fromkeys(output.consumers())


class _Buffers:
    """The buffers that live while operations run one after another."""

    def __init__(self, ops, apart):
        self.peak = self._living = 0
        self._apart = apart
        self._buffer, self._size = {}, {}
        self._readers = collections.Counter()
        self._uses = collections.Counter(
            ref
            for op in ops
            if op.type not in _SHAPE_ONLY
            for ref in {tensor.ref() for tensor in op.inputs}
        )

    def start(self, op):
        """Allocates outputs and scratch; returns the bytes of the latter."""
        for number, output in enumerate(op.outputs):
            self._place(op, number, output)
        scratch = _scratch(op)
        self._living += scratch
        self.peak = max(self.peak, self._living)
        return scratch

    def finish(self, op, scratch):
        """Frees the scratch and every buffer without another reader."""
        self._living -= scratch
        if op.type not in _SHAPE_ONLY:
            for ref in {tensor.ref() for tensor in op.inputs}:
                self._readers[self._buffer[ref]] -= 1
                self._free_if_unread(self._buffer[ref])
        for output in op.outputs:
            self._free_if_unread(self._buffer[output.ref()])

    def _place(self, op, number, output):
        ref = output.ref()
        source = _shared_input(op, number)
        buffer = self._buffer[source.ref()] if source is not None else None
        if buffer is None and op.type in _IN_PLACE:
            buffer = self._reusable(op, num_bytes(output))
        if buffer is None:
            free = op.type == "Const" or ref in self._apart
            buffer, size = ref, 0 if free else num_bytes(output)
            self._size[buffer] = size
            self._living += size
        self._buffer[ref] = buffer
        self._readers[buffer] += self._uses[ref]

    def _reusable(self, op, size):
        for tensor in op.inputs:
            buffer = self._buffer[tensor.ref()]
            if self._readers[buffer] == 1 and self._size[buffer] == size:
                return buffer
        return None

    def _free_if_unread(self, buffer):
        if self._readers[buffer] == 0:
            self._living -= self._size[buffer]
            self._size[buffer] = 0


def _scratch(op):
    """The scratch memory of an operation; of a loop, the peak of a turn."""
    if not graph_loops.is_loop(op):
        return scratch_bytes(op)
    graph = graph_loops.body(op)
    given = {tensor.ref() for tensor in graph.inputs}
    return peak_bytes(needed_ops(graph), given)


def _shared_input(op, number):
    """The input whose buffer an output shares, or None."""
    if graph_loops.is_loop(op):
        return graph_loops.carried_input(op, number)
    if op.type not in _SAME_BUFFER:
        return None
    return op.inputs[number if op.type == "IdentityN" else 0]
