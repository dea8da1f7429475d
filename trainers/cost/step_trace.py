"""A training step as a graph, traced on shapes alone."""

import re
from typing import Any

import keras
import tensorflow as tf
from keras.src.backend.common import global_state
from keras.src.models.functional import operation_fn

from encapnet_tf import create_model


def outline_model(variant: str, **kwargs: Any) -> keras.Model:
    """Builds a variant whose variables have shapes but no values.

    Args:
        variant: As for `create_model`, like everything else.
        **kwargs: As for `create_model`.

    Returns:
        A model for `step_cost`; it cannot compute.
    """
    pending = global_state.get_global_attribute("uninitialized_variables")
    pending = list(pending or ())
    with keras.StatelessScope(initialize_variables=False):
        model = create_model(variant, **kwargs)
    # Otherwise the next model built would fill this one's variables, too.
    global_state.set_global_attribute("uninitialized_variables", pending)
    return model


def trace_step(model: keras.Model, batch_size: int) -> tuple[tf.Graph, int]:
    """Traces forward and backward pass with every variable as an input.

    Args:
        model: A functional Keras model.
        batch_size: Images in the step.

    Returns:
        The graph, and how many of its operations are the forward pass. Its
        inputs are the trainable variables, the others, the images; its
        outputs begin with the gradients.
    """
    num_forward = 0

    @tf.function(autograph=False)
    def step(trainable, others, images):
        nonlocal num_forward
        with tf.GradientTape() as tape:
            tape.watch(trainable)
            loss, state = _forward(model, trainable, others, images)
        num_forward = len(tf.compat.v1.get_default_graph().get_operations())
        # Agreement units note what they see on the way back, too.
        with keras.StatelessScope(initialize_variables=False):
            gradients = tape.gradient(loss, trainable)
        return [g for g in gradients if g is not None], state

    graph = step.get_concrete_function(
        [tf.TensorSpec(v.shape, v.dtype) for v in model.trainable_variables],
        [
            tf.TensorSpec(v.shape, v.dtype)
            for v in model.non_trainable_variables
        ],
        [
            tf.TensorSpec((batch_size, *i.shape[1:]), i.dtype)
            for i in model.inputs
        ],
    ).graph
    return graph, num_forward


def _forward(model, trainable, others, images):
    """Runs the layers, each in a name scope of its number."""
    numbers = {id(layer): n for n, layer in enumerate(model.layers)}

    def in_scope(layer):
        call = operation_fn(layer, training=True)

        def scoped(*args, **kwargs):
            with tf.name_scope(_scope(numbers[id(layer)])):
                return call(*args, **kwargs)

        return scoped

    variables = model.trainable_variables + model.non_trainable_variables
    with keras.StatelessScope(
        zip(variables, [*trainable, *others], strict=True),
        collect_losses=True,
        initialize_variables=False,
    ) as scope:
        outputs = model._run_through_graph(images, operation_fn=in_scope)
        losses = list(scope.losses)
    # Any scalar does: next to a network a classification loss costs nothing.
    for output in tf.nest.flatten(outputs):
        losses.append(tf.reduce_sum(tf.square(tf.cast(output, tf.float32))))
    others = model.non_trainable_variables
    return tf.add_n(losses), [scope.get_current_value(v) for v in others]


def _scope(number):
    return f"layer.{number}"


def layer_number(op: tf.Operation) -> int | None:
    """Returns the place in `model.layers` of the layer that made it."""
    found = re.match(r"layer\.(\d+)", op.name)
    return int(found[1]) if found else None
