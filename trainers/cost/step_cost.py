"""What a training step of a model costs, before anything is allocated."""

import collections
import dataclasses
import math
import os
from typing import NamedTuple

import keras
import tensorflow as tf

from encapnet_tf.checks import check_positive
from encapnet_tf.ops import plain_forms
from encapnet_tf.training_only import (
    TRAINING_ONLY,
    functional,
    training_only_layers,
)
from trainers.cost import graph_memory, op_cost
from trainers.cost.step_trace import layer_number, trace_step

# Measured on the CPU: what the runtime takes for itself in the first step,
# for kernels compiled on the spot and for the optimised graph.
_RUNTIME_BYTES = 50 * 2**20
_RUNTIME_BYTES_PER_OP = 18 * 2**10


@dataclasses.dataclass(frozen=True)
class LayerCost:
    """One layer of a model.

    Attributes:
        name: Its name.
        kind: Its class.
        output_shape: Without the batch axis; of the first output.
        parameters: Trainable parameters.
        other_parameters: Those that are not, such as moving averages.
        multiply_adds: Of the forward pass in training, per image.
        kept_bytes: What its forward pass leaves for the backward pass.
        training_only: Whether it is taken out for inference.
    """

    name: str
    kind: str
    output_shape: tuple[int | None, ...]
    parameters: int
    other_parameters: int
    multiply_adds: int
    kept_bytes: int
    training_only: bool


@dataclasses.dataclass(frozen=True)
class StepCost:
    """A training step of a model at one batch size.

    Attributes:
        batch_size: Images in the step.
        layers: One `LayerCost` each, in the model's order.
        inference_parameters: Trainable parameters without the training-only
            units.
        step_multiply_adds: Forward and backward, per image.
        weight_bytes: All variables of the model.
        gradient_bytes: One gradient per trainable parameter.
        slot_bytes: What the optimiser keeps per trainable parameter.
        transient_bytes: The most that lives beside the kept activations.
        runtime_bytes: TensorFlow's own, by a measured rule.
    """

    batch_size: int
    layers: tuple[LayerCost, ...]
    inference_parameters: int
    step_multiply_adds: int
    weight_bytes: int
    gradient_bytes: int
    slot_bytes: int
    transient_bytes: int
    runtime_bytes: int

    @property
    def parameters(self) -> int:
        """Trainable parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def other_parameters(self) -> int:
        """Parameters that are not trained."""
        return sum(layer.other_parameters for layer in self.layers)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the forward pass in training, per image."""
        return sum(layer.multiply_adds for layer in self.layers)

    @property
    def inference_multiply_adds(self) -> int:
        """The same without the training-only units."""
        return sum(
            layer.multiply_adds
            for layer in self.layers
            if not layer.training_only
        )

    @property
    def kept_bytes(self) -> int:
        """Activations that the forward pass keeps for the backward pass."""
        return sum(layer.kept_bytes for layer in self.layers)

    @property
    def memory_bytes(self) -> int:
        """The estimate of the whole step."""
        return (
            self.weight_bytes
            + self.gradient_bytes
            + self.slot_bytes
            + self.kept_bytes
            + self.transient_bytes
            + self.runtime_bytes
        )


class Parameters(NamedTuple):
    """Trainable parameters, and those left without training-only units."""

    trainable: int
    inference: int


def count_parameters(model: keras.Model) -> Parameters:
    """Counts the parameters of a model, with values or without."""
    trainable = _count(model.trainable_variables)
    units = training_only_layers(model)
    training_only = sum(_count(unit.trainable_variables) for unit in units)
    return Parameters(trainable, trainable - training_only)


def step_cost(
    model: keras.Model,
    batch_size: int,
    *,
    optimizer_slots: int = 2,
    parallel_ops: int | None = None,
) -> StepCost:
    """Counts the cost of a training step without running it.

    The step is traced on shapes alone. Its operations give the multiply-adds;
    its tensors, each alive from its maker to its last reader, the memory.
    Loops are counted with all their turns.

    Args:
        model: A functional or sequential Keras model; `outline_model` makes
            one without allocating it.
        batch_size: Images in the step.
        optimizer_slots: Values the optimiser keeps per parameter: Adam 2,
            SGD with momentum 1.
        parallel_ops: Operations that run at a time; as on this machine where
            not given: TensorFlow's inter-op threads, on a GPU one.

    Returns:
        A `StepCost`.

    Example:
        >>> from trainers.cost.step_trace import outline_model
        >>> cost = step_cost(outline_model("cnn_same_shape"), batch_size=8)
        >>> f"{cost.multiply_adds:,}"
        '133,010,432'
    """
    check_positive(batch_size=batch_size)
    model = functional(model)
    # The network's cost, not that of the form that is fastest on this CPU.
    with plain_forms():
        graph, num_forward = trace_step(model, batch_size)
    needed = graph_memory.needed_ops(graph)
    first = set(graph.get_operations()[:num_forward])
    forward = [op for op in needed if op in first]
    backward = [op for op in needed if op not in first]
    apart = _counted_apart(model, graph)
    kept = _kept_per_layer(
        model, graph, graph_memory.kept_tensors(forward, backward, apart)
    )
    peak = graph_memory.peak_bytes(
        needed, apart, parallel_ops or _parallel_ops()
    )
    trainable = sum(_num_bytes(v) for v in model.trainable_variables)
    return StepCost(
        batch_size=batch_size,
        layers=_layer_costs(model, batch_size, forward, kept),
        inference_parameters=count_parameters(model).inference,
        step_multiply_adds=sum(map(op_cost.multiply_adds, needed))
        // batch_size,
        weight_bytes=sum(_num_bytes(v) for v in model.variables),
        gradient_bytes=trainable,
        slot_bytes=optimizer_slots * trainable,
        transient_bytes=max(0, peak - sum(kept.values())),
        runtime_bytes=_RUNTIME_BYTES + _RUNTIME_BYTES_PER_OP * len(needed),
    )


def _parallel_ops():
    if tf.config.list_physical_devices("GPU"):
        return 1
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    return threads or os.cpu_count() or 1


def _counted_apart(model, graph):
    """References of the variables and their gradients in the graph."""
    apart = {tensor.ref() for tensor in graph.inputs[: len(model.variables)]}
    for tensor in graph.outputs[: len(model.trainable_variables)]:
        apart.add(graph_memory.buffer_maker(tensor).ref())
    return apart


def _kept_per_layer(model, graph, kept):
    """Bytes by number of layer; those of the images at the inputs."""
    images = graph.inputs[len(model.variables) :]
    inputs = [
        number
        for number, layer in enumerate(model.layers)
        if isinstance(layer, keras.layers.InputLayer)
    ]
    at_input = {
        tensor.ref(): number
        for tensor, number in zip(images, inputs, strict=False)
    }
    sums = collections.Counter()
    for tensor in kept:
        number = at_input.get(tensor.ref(), layer_number(tensor.op))
        if number is not None:
            sums[number] += op_cost.num_bytes(tensor)
    return sums


def _layer_costs(model, batch_size, forward, kept):
    products = collections.Counter()
    for op in forward:
        products[layer_number(op)] += op_cost.multiply_adds(op)
    return tuple(
        LayerCost(
            name=layer.name,
            kind=type(layer).__name__,
            output_shape=_output_shape(layer),
            parameters=_count(layer.trainable_variables),
            other_parameters=_count(layer.non_trainable_variables),
            multiply_adds=products[number] // batch_size,
            kept_bytes=kept[number],
            training_only=isinstance(layer, TRAINING_ONLY),
        )
        for number, layer in enumerate(model.layers)
    )


def _output_shape(layer):
    outputs = tf.nest.flatten(layer.output)
    return tuple(outputs[0].shape[1:])


def _count(variables):
    return sum(math.prod(v.shape) for v in variables)


def _num_bytes(variable):
    return math.prod(variable.shape) * tf.as_dtype(variable.dtype).size
