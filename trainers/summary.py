"""Shows what a variant costs before anything is allocated.

    python -m trainers.summary VARIANT --batch_size=128

prints its layers, parameters, multiply-adds and the memory of a training
step, and says whether the step fits here. Without a variant: all of them.
"""

import keras
import tensorflow as tf
from absl import flags

from trainers import cli
from trainers.cost.machine_memory import Memory, available_memory
from trainers.cost.step_cost import StepCost, step_cost
from trainers.cost.step_trace import outline_model
from trainers.cost.tables import (
    gib,
    layers_table,
    shape_text,
    totals,
    variants_table,
)

# Peaks that were measured lay up to a quarter above the estimate.
_SHARE_TO_USE = 0.8


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_integer(
        "batch_size", 128, "Images in a step.", lower_bound=1, **kwargs
    )
    flags.DEFINE_list(
        "input_shape", None, "Height,width,channels of an image.", **kwargs
    )
    flags.DEFINE_integer(
        "num_classes", None, "Number of classes.", lower_bound=1, **kwargs
    )
    flags.DEFINE_string(
        "dtype_policy", "float32", "Such as mixed_bfloat16.", **kwargs
    )
    flags.DEFINE_multi_string(
        "override",
        [],
        "Fields of the variant's config, values as in Python: "
        "--override=type2_layers=(1,1,1),agreement=none",
        **kwargs,
    )


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> None:
    """Prints one variant, or the list of them."""
    if len(arguments) > 1:
        raise ValueError(
            f"At most one variant is expected. Received: {' '.join(arguments)}."
        )
    print(_one_variant(*arguments, values) if arguments else variants_table())


def _one_variant(variant, values):
    memory = available_memory()
    for gpu in tf.config.list_physical_devices("GPU"):
        # Or TensorFlow would take the whole GPU for a count.
        tf.config.experimental.set_memory_growth(gpu, True)
    model = _outline(variant, values)
    cost = step_cost(model, values.batch_size)
    images = shape_text(model.input_shape[1:])
    title = (
        f"{variant}: images {images}, {model.output_shape[-1]} classes, "
        f"batch {cost.batch_size:,}, {values.dtype_policy}"
    )
    answer = verdict(model, cost, memory)
    return "\n\n".join((title, layers_table(cost), totals(cost), answer))


def _outline(variant, values):
    overrides = cli.parse_overrides(values.override)
    shape = values.input_shape and parse_shape(values.input_shape)
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(values.dtype_policy)
    try:
        return outline_model(
            variant,
            num_classes=values.num_classes,
            input_shape=shape,
            **overrides,
        )
    except TypeError as error:
        raise ValueError(
            "--override must give each field a value of its kind. "
            f"Received: {overrides} ({error})."
        ) from error
    finally:
        keras.config.set_dtype_policy(before)


def parse_shape(sides: list[str]) -> tuple[int, ...]:
    """Reads `--input_shape`."""
    try:
        return tuple(int(side) for side in sides)
    except ValueError:
        raise ValueError(
            "--input_shape must be height,width,channels, such as 32,32,3. "
            f"Received: --input_shape={','.join(sides)}."
        ) from None


def fits(cost: StepCost, memory: Memory) -> bool:
    """Whether a step finds enough memory."""
    return cost.memory_bytes <= _SHARE_TO_USE * memory.free_bytes


def verdict(model: keras.Model, cost: StepCost, memory: Memory) -> str:
    """Says whether the step fits, and if not, what does."""
    need = f"about {gib(cost.memory_bytes)}"
    there = f"{gib(memory.free_bytes)} free {memory.place}"
    if fits(cost, memory):
        return f"It fits: a step takes {need}; {there}."
    size, smaller = _largest_batch(model, cost, memory)
    advice = (
        f"The largest power-of-two batch that fits is {size} "
        f"({gib(smaller.memory_bytes)})."
        if size
        else "Not even a batch of one image fits."
    )
    return f"It does not fit: a step takes {need}; {there}. {advice}"


def _largest_batch(model, cost, memory):
    """Shrinks the batch in proportion, then by halves until it fits.

    In proportion it is never too small: part of the memory stays as it is.
    """
    usable = _SHARE_TO_USE * memory.free_bytes
    guess = int(cost.batch_size * usable / cost.memory_bytes)
    size = 1 << guess.bit_length() >> 1
    while size:
        smaller = step_cost(model, size)
        if fits(smaller, memory):
            return size, smaller
        size //= 2
    return 0, cost


if __name__ == "__main__":
    define()
    cli.run(main)
