"""What measures one task of a benchmark, in a `Child` that then ends.

So every network starts with the memory of a fresh process, and one that runs
out of it takes nothing else along.
"""

import contextlib
import dataclasses
import math
import pathlib
from collections.abc import Iterable
from typing import Any

from encapnet_tf.choices import AUGMENTATIONS
from trainers.benchmark import calls
from trainers.benchmark.results import (
    WITH_UNITS,
    WITHOUT_UNITS,
    Key,
    Measurement,
)
from trainers.cost.machine_memory import peak_memory
from trainers.cost.timing import interleaved_seconds
from trainers.recipe import make_recipe
from trainers.study.trainer import failure

_IMAGE_SHAPE = (32, 32, 3)
# Entries of a vector of an agreement unit: 8·8 of a map of 32·32.
_FEATURES = 64


def measure_products(
    sides: Iterable[int], seconds: float
) -> dict[int, list[float]]:
    """Times matrix products of several sizes in turn."""
    products = {side: calls.matrix_product(side) for side in sides}
    times = interleaved_seconds(products, seconds * len(products))
    return {side: spent.tolist() for side, spent in times.items()}


def measure_variant(
    variant: str,
    batch: int,
    seconds: float,
    multiply_adds: dict[str, int],
    counted_bytes: int,
) -> list[Measurement]:
    """Times training and inference, and takes the memory of training.

    Args:
        variant: The network.
        batch: Images in a step.
        seconds: About how long to time each.
        multiply_adds: Of one call, by action.
        counted_bytes: The memory of training, as it is counted.
    """
    # Otherwise TensorFlow's start would count.
    calls.matrix_product(8)()
    before = _reset_peak_memory()
    network = calls.network(_recipe(variant, batch))
    for _ in range(2):
        network["train"]()
    memory = peak_memory() - before
    keys = {
        action: Key("variants", variant, action, batch) for action in network
    }
    train, inference = calls.in_turn(
        {keys[action]: call for action, call in network.items()},
        seconds,
        images=batch,
        multiply_adds={keys[a]: count for a, count in multiply_adds.items()},
    )
    train = dataclasses.replace(
        train, memory_bytes=memory, counted_bytes=counted_bytes
    )
    return [train, inference]


def measure_agreement(
    variant: str, batch: int, seconds: float
) -> list[Measurement]:
    """Times training steps of a network with its units and without."""
    contestants = {}
    for action, changes in (
        (WITH_UNITS, {}),
        (WITHOUT_UNITS, {"agreement": "none"}),
    ):
        recipe = _recipe(variant, batch, override=changes)
        key = Key("agreement", variant, action, batch)
        contestants[key] = calls.network(recipe)["train"]
    return calls.in_turn(contestants, seconds)


def measure_convolutions(
    variant: str, batch: int, seconds: float, multiply_adds: int
) -> list[Measurement]:
    """Times the aide convolutions of a network alone, and its whole step.

    Args:
        variant: The network.
        batch: Images in a step.
        seconds: About how long to time each.
        multiply_adds: Of a training step.
    """
    whole = Key("convolutions", variant, "train", batch)
    contestants = {whole: calls.network(_recipe(variant, batch))["train"]}
    counts = {whole: multiply_adds}
    for name, (layer, maps) in calls.aides(variant).items():
        shape = (batch, *maps)
        for action, call in calls.convolution(layer, shape).items():
            key = Key("convolutions", name, action, batch)
            contestants[key] = call
            places = math.prod(layer.compute_output_shape(shape)[:-1])
            count = places * math.prod(layer.kernel.shape)
            # One for the gradient of the maps, one for that of the kernel.
            counts[key] = count if action == "forward" else 2 * count
    return calls.in_turn(
        contestants, seconds, images=batch, multiply_adds=counts
    )


def measure_pipeline(
    batch: int, num_images: int, seconds: float
) -> list[Measurement]:
    """Times epochs of images in memory under every augmentation."""
    split = calls.random_split(num_images, _IMAGE_SHAPE)
    contestants = {
        Key("pipeline", name, "read", batch): calls.read_epoch(
            split, batch, name
        )
        for name in AUGMENTATIONS
    }
    images = num_images // batch * batch
    return calls.in_turn(contestants, seconds, images=images)


def measure_solver(batches: Iterable[int], seconds: float) -> list[Measurement]:
    """Times the Sinkhorn divergence in both domains."""
    contestants = {
        Key("solver", domain, action, batch): calls.divergence(
            batch, _FEATURES, gradient=action != "value", domain=domain
        )
        for domain in ("scaling", "log")
        for action in ("value", "value and gradient")
        for batch in batches
    }
    return calls.in_turn(contestants, seconds)


def measure_growth(
    name: str, cases: dict[int, dict[str, Any]], seconds: float
) -> list[Measurement]:
    """Times training steps, or divergences, of growing size.

    Args:
        name: What grows.
        cases: By size, the fields of a recipe, or the arguments of a
            divergence where no variant is named.
        seconds: About how long to time each.
    """
    contestants = {}
    for size, case in cases.items():
        if "variant" in case:
            action, call = "train", calls.network(make_recipe(case))["train"]
        else:
            action = "value and gradient"
            call = calls.divergence(features=_FEATURES, **case)
        contestants[Key("growth", name, action, int(size))] = call
    return calls.in_turn(contestants, seconds)


_MEASURES = {
    "variants": measure_variant,
    "agreement": measure_agreement,
    "convolutions": measure_convolutions,
    "pipeline": measure_pipeline,
    "solver": measure_solver,
    "growth": measure_growth,
}


class Measurer:
    """Measures in this process."""

    def answer(self, task: dict[str, Any]) -> dict[str, Any]:
        """Returns what a task gave, or why it failed.

        Args:
            task: The name of its `part`, and the arguments that go there.
        """
        arguments = {k: v for k, v in task.items() if k != "part"}
        try:
            if task["part"] == "products":
                return {"products": measure_products(**arguments)}
            found = _MEASURES[task["part"]](**arguments)
            return {"measurements": [dataclasses.asdict(m) for m in found]}
        except Exception as trouble:  # whatever it was, the program goes on
            return failure(trouble)


def _recipe(variant, batch, **fields):
    return make_recipe({"variant": variant, "batch_size": batch} | fields)


def _reset_peak_memory():
    """Resets the peak memory, where Linux can; returns it."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()
