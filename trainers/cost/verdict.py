"""Whether a training step fits into memory, and if not, what does."""

import keras

from trainers.cost.machine_memory import Memory
from trainers.cost.step_cost import StepCost, step_cost
from trainers.cost.tables import gib

# Peaks that were measured lay up to a quarter above the estimate.
_SHARE_TO_USE = 0.8


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
