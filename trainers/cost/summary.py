"""What a variant costs, as text."""

from typing import Any

import keras
import tensorflow as tf

from trainers.cost.machine_memory import available_memory
from trainers.cost.step_cost import step_cost
from trainers.cost.step_trace import outline_model
from trainers.cost.tables import (
    layers_table,
    shape_text,
    totals,
    variants_table,
)
from trainers.cost.verdict import verdict
from trainers.progress import StageProgress

# What takes how long, of a network of 18 layers.
_STAGES = {"building": 0.5, "tracing a step": 3.0, "trying batches": 1.5}

__all__ = ["summarise", "variants_table"]


def summarise(
    variant: str, *, batch_size: int, dtype_policy: str, **overrides: Any
) -> str:
    """Lays out the layers, the sums, and whether a step fits here.

    Args:
        variant: The network.
        batch_size: Images in a step.
        dtype_policy: Number format.
        **overrides: Fields of the variant's config.
    """
    memory = available_memory()
    for gpu in tf.config.list_physical_devices("GPU"):
        # Otherwise TensorFlow would take the whole GPU just to count.
        tf.config.experimental.set_memory_growth(gpu, True)
    progress = StageProgress(_STAGES)
    with progress.shown():
        progress.begin("building")
        model = _outline(variant, dtype_policy, overrides)
        progress.begin("tracing a step")
        cost = step_cost(model, batch_size)
        progress.begin("trying batches")
        answer = verdict(model, cost, memory)
    images = shape_text(model.input_shape[1:])
    title = (
        f"{variant}: images {images}, {model.output_shape[-1]} classes, "
        f"batch {cost.batch_size:,}, {dtype_policy}"
    )
    return "\n\n".join((title, layers_table(cost), totals(cost), answer))


def _outline(variant, dtype_policy, overrides):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype_policy)
    try:
        return outline_model(variant, **overrides)
    except TypeError as error:
        raise ValueError(
            "--override must give each field a value of its kind. "
            f"Received: {overrides} ({error})."
        ) from error
    finally:
        keras.config.set_dtype_policy(before)
