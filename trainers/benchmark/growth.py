"""How time grows with size: what is tried, and the exponent that fits."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from encapnet_tf.config import VARIANTS
from trainers.benchmark.results import Measurement

_VARIANT = "encapnet_small"
_MODULES = len(VARIANTS[_VARIANT].type2_layers)
_BATCH = 64
_SOLVER_BATCH = 256


class Growth(NamedTuple):
    """Something that can be made larger.

    Attributes:
        meaning: What its size counts.
        sizes: What is tried.
        case: From a size to the fields of a recipe, or to the arguments of a
            Sinkhorn divergence.
    """

    meaning: str
    sizes: tuple[int, ...]
    case: Callable[[int], dict[str, Any]]


def _network(**fields):
    return {"variant": _VARIANT, "batch_size": _BATCH} | fields


GROWTHS = {
    "batch": Growth(
        "images in a step",
        # Large enough to make what does not grow negligible.
        (128, 256, 512, 1024),
        lambda size: _network(batch_size=size),
    ),
    "width": Growth(
        "capsule channels",
        (8, 16, 32, 64),
        # Two entries per capsule, as in the variant itself.
        lambda size: _network(
            override={"num_capsules": size, "stem": ((2 * size, 2),)}
        ),
    ),
    "depth": Growth(
        "type II layers of a module",
        (1, 2, 4, 8),
        lambda size: _network(override={"type2_layers": (size,) * _MODULES}),
    ),
    "iterations": Growth(
        "Sinkhorn iterations",
        # The same: as few as a unit makes cost hardly anything.
        (64, 128, 256, 512),
        lambda size: {
            "batch_size": _SOLVER_BATCH,
            "num_iterations": size,
            "domain": "scaling",
        },
    ),
}


class Fit(NamedTuple):
    """Time as a power of size.

    Attributes:
        exponent: 1 where twice the size takes twice the time; less where
            part of the time does not grow.
        standard_error: Of the exponent.
    """

    exponent: float
    standard_error: float


def fit_exponent(
    sizes: Sequence[float], seconds: Sequence[Sequence[float]]
) -> Fit:
    """Fits log time over log size by least squares.

    The exponent is that of the median times. Its standard error is the larger
    of two: by how far these lie off the line, and by how much the exponents
    of single rounds differ.

    Args:
        sizes: At least three different ones.
        seconds: For each, its time in every round.

    Returns:
        The exponent, with its standard error.

    Example:
        >>> fit_exponent([1, 2, 4], [[3, 3], [12, 12], [48, 48]])
        Fit(exponent=2.0, standard_error=0.0)
    """
    if len(set(sizes)) < 3 or len(sizes) != len(seconds):
        raise ValueError(
            "An exponent needs the times of three different sizes or more. "
            f"Received: sizes={list(sizes)}, {len(seconds)} times."
        )
    x, times = np.log2(sizes), np.asarray(seconds)
    x = x - x.mean()
    y = np.log2(np.median(times, axis=1))
    exponent = (x @ y) / (x @ x)
    residuals = y - y.mean() - exponent * x
    off_line = math.sqrt((residuals @ residuals) / (len(x) - 2) / (x @ x))
    by_round = x @ np.log2(times) / (x @ x)
    between_rounds = np.std(by_round, ddof=1) / math.sqrt(len(by_round))
    return Fit(float(exponent), float(max(off_line, between_rounds)))


def fit_growths(measurements: Sequence[Measurement]) -> dict[str, Fit]:
    """Fits everything that grew, by name."""
    points: dict[str, list] = {}
    for found in measurements:
        points.setdefault(found.name, []).append(found)
    return {
        name: fit_exponent([m.size for m in grown], [m.seconds for m in grown])
        for name, grown in points.items()
    }
