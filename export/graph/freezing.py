"""From a Keras model to the graph that only infers.

Variables become constants, what depends on constants alone is computed now
(the aide's masked kernel), and every batch normalisation that follows a
convolution, or a sum of convolutions, goes into their kernels and biases.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2

from encapnet_tf.ops import plain_forms
from encapnet_tf.tensorflow_internals import with_constants

# From a tensor to tensors by name.
Inference = Callable[[tf.Tensor], dict[str, tf.Tensor]]

_PASS_ON = ("Identity", "IdentityN", "StopGradient")
_SUMS = ("AddV2", "BiasAdd")


def freeze(function: Inference, spec: tf.TensorSpec) -> Inference:
    """Returns a function like `function`, in its fastest form.

    Args:
        function: What to freeze; read once, with the weights it has now.
        spec: What it takes.

    Returns:
        A function without variables.
    """
    traced = tf.function(function, input_signature=[spec], jit_compile=False)
    with plain_forms():
        concrete = traced.get_concrete_function()
    names = sorted(concrete.structured_outputs)
    frozen = with_constants(concrete)
    ends = [tensor.name for tensor in frozen.outputs]
    graph = _Graph(frozen.graph.as_graph_def(), ends)
    graph.pass_by_identities()
    graph.compute_constants()
    graph.fold_batch_norms()
    graph.name_biases()
    pruned = graph.function([frozen.inputs[0].name], ends)
    return lambda inputs: dict(zip(names, pruned(inputs), strict=True))


class _Graph:
    """A graph under change.

    Args:
        definition: The graph.
        ends: Names of the tensors that leave it.
    """

    def __init__(self, definition: graph_pb2.GraphDef, ends: list[str]):
        self._versions = definition.versions
        self._nodes = {node.name: node for node in definition.node}
        self._ends = {_node(end) for end in ends}

    def function(self, inputs: list[str], outputs: list[str]):
        """Returns the part of the graph between tensors, to be called."""
        definition = graph_pb2.GraphDef(
            node=self._nodes.values(), versions=self._versions
        )
        whole = tf.compat.v1.wrap_function(
            lambda: tf.graph_util.import_graph_def(definition, name=""), []
        )
        return whole.prune(inputs, outputs)

    def pass_by_identities(self) -> None:
        """Connects every reader to where its input is made."""
        for node in self._nodes.values():
            data = [name for name in node.input if not name.startswith("^")]
            node.input[:] = [self._origin(name) for name in data]

    def _origin(self, tensor):
        node = self._nodes[_node(tensor)]
        if node.op not in _PASS_ON:
            return tensor
        _, _, number = tensor.partition(":")
        return self._origin(node.input[int(number or 0)])

    def compute_constants(self) -> None:
        """Replaces what depends on constants alone by its value."""
        known: dict[str, bool] = {}

        def is_known(name):
            if name not in known:
                node = self._nodes[name]
                inputs = {_node(tensor) for tensor in node.input}
                known[name] = node.op == "Const" or (
                    bool(inputs) and all(map(is_known, inputs))
                )
            return known[name]

        wanted = {
            tensor
            for node in self._nodes.values()
            if not is_known(node.name)
            for tensor in node.input
            if is_known(_node(tensor)) and not self._is_constant(tensor)
        }
        wanted = sorted(wanted)
        values = self.function([], [_tensor(name) for name in wanted])()
        for tensor, value in zip(wanted, values, strict=True):
            self._nodes[_node(tensor)] = _constant(_node(tensor), value.numpy())

    def fold_batch_norms(self) -> None:
        """Folds each into what it follows, or makes it a product and a sum."""
        norms = [n for n in self._nodes.values() if n.op == "FusedBatchNormV3"]
        for norm in norms:
            gamma, beta, mean, variance = map(self._value, norm.input[1:5])
            scale = gamma / np.sqrt(variance + norm.attr["epsilon"].f)
            offset = beta - mean * scale
            if self._is_linear(norm.input[0]):
                source, bias = self._absorb(norm.input[0], scale)
                self._put(norm.name, "BiasAdd", source, bias + offset)
            else:
                scaled = f"{norm.name}/scaled"
                self._put(scaled, "Mul", norm.input[0], scale)
                self._put(norm.name, "AddV2", scaled, offset)

    def _is_linear(self, tensor):
        """Whether a scale can go into the kernels behind a tensor."""
        node = self._nodes[_node(tensor)]
        if self._readers()[node.name] > 1:
            return False
        if node.op == "Conv2D":
            return self._is_constant(node.input[1])
        return node.op in _SUMS and all(
            self._is_bias(term) or self._is_linear(term) for term in node.input
        )

    def _absorb(self, tensor, scale):
        """Scales what feeds a tensor; returns it and, apart, its bias."""
        node = self._nodes[_node(tensor)]
        if node.op == "Conv2D":
            kernel = self._value(node.input[1]) * scale
            node.input[1] = self._add_constant(f"{node.name}/kernel", kernel)
            return node.name, 0.0
        bias, terms = 0.0, []
        for term in node.input:
            if self._is_bias(term):
                bias = bias + self._value(term) * scale
            else:
                source, more = self._absorb(term, scale)
                bias = bias + more
                terms.append(source)
        if len(terms) == 1:
            return terms[0], bias
        node.input[:] = terms
        return node.name, bias

    def name_biases(self) -> None:
        """Adds biases to convolutions by BiasAdd, which TensorFlow fuses."""
        for node in self._nodes.values():
            if node.op == "AddV2" and self._is_bias(node.input[1]):
                source = self._nodes[_node(node.input[0])]
                if source.op == "Conv2D":
                    node.op = "BiasAdd"

    def _readers(self):
        tensors = [t for node in self._nodes.values() for t in node.input]
        return Counter([*map(_node, tensors), *self._ends])

    def _is_constant(self, tensor):
        return self._nodes[_node(tensor)].op == "Const"

    def _is_bias(self, tensor):
        return self._is_constant(tensor) and self._value(tensor).ndim == 1

    def _value(self, tensor):
        """A constant, in float64: folded numbers are rounded once."""
        proto = self._nodes[_node(tensor)].attr["value"].tensor
        return tf.make_ndarray(proto).astype(np.float64)

    def _put(self, name, op, source, vector):
        """Makes the node `name`: an operation on a tensor and a constant."""
        constant = self._add_constant(f"{name}/{op}", vector)
        node = node_def_pb2.NodeDef(name=name, op=op, input=[source, constant])
        node.attr["T"].CopyFrom(self._nodes[constant].attr["dtype"])
        self._nodes[name] = node

    def _add_constant(self, name, value):
        self._nodes[name] = _constant(name, value.astype(np.float32))
        return name


def _constant(name, value):
    node = node_def_pb2.NodeDef(name=name, op="Const")
    proto = tf.make_tensor_proto(value)
    node.attr["dtype"].type = proto.dtype
    node.attr["value"].tensor.CopyFrom(proto)
    return node


def _node(tensor):
    return tensor.partition(":")[0]


def _tensor(name):
    return name if ":" in name else f"{name}:0"
