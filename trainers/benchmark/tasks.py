"""What a benchmark measures: one task for each process that measures."""

from typing import Any

from trainers.benchmark.growth import GROWTHS
from trainers.benchmark.settings import PARTS, Settings
from trainers.cost.machine_memory import available_memory
from trainers.cost.step_cost import StepCost, step_cost
from trainers.cost.step_trace import outline_model
from trainers.cost.verdict import fits, verdict

# Sides of square matrices; from some size on, larger ones are no faster.
_PRODUCTS = (1024, 2048, 3072)
# The networks whose agreement units are left out.
_AGREEMENT = ("encapnet14_authors_master", "encapnet14_authors")
# The network whose aide is most of its cost.
_CONVOLUTIONS = {"variant": "encapnet6", "batch": 128}
# Images in memory, enough to hide what starts an epoch.
_PIPELINE_IMAGES = 16_384
_SOLVER_BATCHES = (64, 128, 256)

# About how many calls a task times.
_CALLS = {
    "products": 3, "variants": 2, "agreement": 2, "convolutions": 3,
    "pipeline": 4, "solver": 12, "growth": 5,
}  # fmt: skip

Task = dict[str, Any]


def product_task(settings: Settings) -> Task:
    """Asks for the best rate of this machine."""
    return {
        "part": "products",
        "sides": _PRODUCTS,
        "seconds": settings.seconds,
    }


def make_tasks(settings: Settings) -> list[Task]:
    """Lays out what to measure, part by part.

    Raises:
        ValueError: One of the networks does not fit into memory.
    """
    makers = {
        "variants": _variant_tasks,
        "agreement": _agreement_tasks,
        "convolutions": _convolution_tasks,
        "pipeline": _pipeline_tasks,
        "solver": _solver_tasks,
        "growth": _growth_tasks,
    }
    return [
        {"part": part, "seconds": settings.seconds} | task
        for part in PARTS
        if part in settings.parts
        for task in makers[part](settings)
    ]


def name_of(task: Task) -> str:
    """Says what a task measures, for people."""
    name = task.get("variant") or task.get("name")
    return f"{task['part']}, {name}" if name else task["part"]


def seconds_of(task: Task) -> float:
    """Guesses how long a task takes, the start of its process included."""
    return 15 + _CALLS[task["part"]] * task["seconds"]


def _variant_tasks(settings):
    for variant in dict.fromkeys(settings.variants):
        cost = _cost(variant, settings.batch)
        yield {
            "variant": variant,
            "batch": settings.batch,
            "multiply_adds": {
                "train": cost.step_multiply_adds * settings.batch,
                "inference": cost.inference_multiply_adds * settings.batch,
            },
            "counted_bytes": cost.memory_bytes,
        }


def _agreement_tasks(settings):
    for variant in _AGREEMENT:
        _cost(variant, settings.batch)
        yield {"variant": variant, "batch": settings.batch}


def _convolution_tasks(_):
    cost = _cost(**_CONVOLUTIONS)
    count = cost.step_multiply_adds * cost.batch_size
    yield _CONVOLUTIONS | {"multiply_adds": count}


def _cost(variant: str, batch: int, **override: Any) -> StepCost:
    """Counts what a training step costs, and refuses what does not fit."""
    model = outline_model(variant, **override)
    cost, memory = step_cost(model, batch), available_memory()
    if not fits(cost, memory):
        raise ValueError(
            "A network must fit into memory to be measured. Received: "
            f"{variant} at batch {batch}. {verdict(model, cost, memory)}"
        )
    return cost


def _pipeline_tasks(settings):
    # At least one whole batch.
    count = max(_PIPELINE_IMAGES, settings.batch)
    yield {"batch": settings.batch, "num_images": count}


def _solver_tasks(_):
    yield {"batches": _SOLVER_BATCHES}


def _growth_tasks(_):
    for name, growth in GROWTHS.items():
        cases = {size: growth.case(size) for size in growth.sizes}
        largest = cases[max(cases)]
        if "variant" in largest:
            _cost(
                largest["variant"],
                largest["batch_size"],
                **largest.get("override", {}),
            )
        yield {"name": name, "cases": cases}
