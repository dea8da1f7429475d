"""The parts of a benchmark: what is timed in turn, and what that makes."""

import contextlib
import pathlib
from collections.abc import Iterable
from typing import Any

from encapnet_tf.data.augmentation import AUGMENTATIONS
from trainers import benchmark_calls as calls
from trainers.benchmark_convolutions import measure_convolutions
from trainers.benchmark_results import Measurement
from trainers.machine_memory import peak_memory
from trainers.recipe import make_recipe
from trainers.timing import interleaved_seconds

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
    # Or what TensorFlow takes to wake up would count.
    calls.matrix_product(8)()
    before = _reset_peak_memory()
    recipe = make_recipe({"variant": variant, "batch_size": batch})
    network = calls.network(recipe)
    for _ in range(2):
        network["train"]()
    memory = {
        "memory_bytes": peak_memory() - before,
        "counted_bytes": counted_bytes,
    }
    times, product = calls.in_turn(network, seconds)
    return [
        Measurement(
            "variants",
            variant,
            action,
            batch,
            spent,
            product,
            images=batch,
            multiply_adds=multiply_adds[action],
            **(memory if action == "train" else {}),
        )
        for action, spent in times.items()
    ]


def measure_pipeline(
    batch: int, num_images: int, seconds: float
) -> list[Measurement]:
    """Times epochs of images in memory under every augmentation."""
    split = calls.random_split(num_images, _IMAGE_SHAPE)
    times, product = calls.in_turn(
        {name: calls.read_epoch(split, batch, name) for name in AUGMENTATIONS},
        seconds,
    )
    images = num_images // batch * batch
    return [
        Measurement(
            "pipeline", name, "read", batch, spent, product, images=images
        )
        for name, spent in times.items()
    ]


def measure_solver(batches: Iterable[int], seconds: float) -> list[Measurement]:
    """Times the Sinkhorn divergence in both domains."""
    contestants = {
        (domain, action, batch): calls.divergence(
            batch, _FEATURES, gradient=action != "value", domain=domain
        )
        for batch in batches
        for domain in ("scaling", "log")
        for action in ("value", "value and gradient")
    }
    times, product = calls.in_turn(contestants, seconds)
    return [
        Measurement("solver", *key, spent, product)
        for key, spent in times.items()
    ]


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
    contestants, action = {}, "train"
    for size, case in cases.items():
        if "variant" in case:
            call = calls.network(make_recipe(case))["train"]
        else:
            action = "value and gradient"
            call = calls.divergence(**case, features=_FEATURES, gradient=True)
        contestants[int(size)] = call
    times, product = calls.in_turn(contestants, seconds)
    return [
        Measurement("growth", name, action, size, spent, product)
        for size, spent in times.items()
    ]


PARTS = {
    "variants": measure_variant,
    "convolutions": measure_convolutions,
    "pipeline": measure_pipeline,
    "solver": measure_solver,
    "growth": measure_growth,
}


def _reset_peak_memory():
    """Lets the peak start from now, where Linux can; returns it."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()
