"""How the error grows when images are disturbed."""

import collections
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras

from encapnet_tf.data import Split
from trainers.evaluate.disturbances import (
    PGD_STEPS,
    Adversary,
    rotate,
    scale,
    shift,
)
from trainers.scoring import interval, stored_batches
from trainers.tables import aligned

# Ours: strengths at which small colour images go from easy to hard.
ROTATIONS = (10, 20, 30, 45)  # degrees, either way
SCALES = (0.6, 0.75, 0.9, 1.1, 1.25, 1.5)
SHIFTS = (1 / 16, 1 / 8, 1 / 4)  # of the side, in four directions
ATTACKS = (1, 2, 4)  # 1/255

# How many disturbed images one image becomes.
_VIEWS = {
    "rotation": 2 * len(ROTATIONS),
    "scale": len(SCALES),
    "shift": 4 * len(SHIFTS),
    "FGSM": len(ATTACKS),
    "PGD": len(ATTACKS),
}

UNITS = {
    "rotation": " degrees",
    "scale": " times",
    "shift": " pixels",
    "FGSM": "/255",
    "PGD": "/255",
}


class DisturbedError(NamedTuple):
    """The error under one disturbance.

    Attributes:
        disturbance: A key of `UNITS`.
        strength: How strong, in the unit of the disturbance.
        error: Share of images taken for another class, over all signs and
            directions of the disturbance.
        low: Lower end of the 95% interval.
        high: Upper end.
    """

    disturbance: str
    strength: float
    error: float
    low: float
    high: float


def measure_robustness(
    model: keras.Model,
    split: Split,
    augmentation: str,
    seed: int = 0,
    report: Callable[[float], None] = lambda share: None,
) -> list[DisturbedError]:
    """Measures the error of a model under every disturbance.

    Args:
        model: From images in [0, 1] to class scores.
        split: The examples.
        augmentation: What the model was trained with.
        seed: Seed of the random starts of PGD.
        report: Called with the share of the work that is done, above 0.

    Returns:
        One measurement per disturbance and strength.
    """
    adversary = Adversary(model, augmentation)
    wrong, views = collections.Counter(), collections.Counter()
    done = spent = 0
    whole = split.num_examples * sum(
        _effort(name) * count for name, count in _VIEWS.items()
    )
    for number, (images, labels) in enumerate(stored_batches(model, split)):
        plain = int(adversary.errors(images, labels))
        for key in _undisturbed():
            wrong[key] += plain
            views[key] += len(labels)
        for *key, disturbed in _disturbed(
            adversary, images, labels, (seed, number)
        ):
            wrong[*key] += int(adversary.errors(disturbed, labels))
            views[*key] += len(labels)
            spent += _effort(key[0]) * len(labels)
            report(min(1.0, spent / whole))
        done += len(labels)
    errors = {key: wrong[key] / views[key] for key in views}
    return [
        DisturbedError(*key, errors[key], *interval(errors[key], done))
        for key in sorted(errors, key=_order)
    ]


def _effort(disturbance):
    """Passes through the network, forwards or back, that an image takes."""
    steps = {"FGSM": 1, "PGD": PGD_STEPS}.get(disturbance, 0)
    return 1 + 2 * steps


def _undisturbed():
    """Where every scale starts: the images as they are."""
    return [(name, 1.0 if name == "scale" else 0.0) for name in UNITS]


def _order(key):
    return list(UNITS).index(key[0]), key[1]


def _disturbed(adversary, images, labels, seed):
    """Yields disturbance, strength and images, one sign after the other."""
    for degrees in ROTATIONS:
        for sign in (1, -1):
            yield "rotation", float(degrees), rotate(images, sign * degrees)
    for factor in SCALES:
        yield "scale", float(factor), scale(images, factor)
    for share in SHIFTS:
        # Whole pixels, so that interpolation plays no part.
        pixels = round(share * max(images.shape[1:3]))
        for right, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            moved = shift(images, right * pixels, down * pixels)
            yield "shift", float(pixels), moved
    for level in ATTACKS:
        attacked = adversary.fgsm(images, labels, level / 255)
        yield "FGSM", float(level), attacked
    for level in ATTACKS:
        attacked = adversary.pgd(images, labels, level / 255, seed)
        yield "PGD", float(level), attacked


def robustness_table(measurements: dict[str, list[DisturbedError]]) -> str:
    """Sets the errors of one or several runs side by side, as text."""
    rows = [("disturbance", "strength", *measurements)]
    for same in zip(*measurements.values(), strict=True):
        name, strength = same[0].disturbance, same[0].strength
        errors = (f"{each.error:.1%}" for each in same)
        rows.append((name, f"{strength:g}{UNITS[name]}", *errors))
    return aligned(rows, "<>" + ">" * len(measurements))


def robustness_rows(
    measurements: dict[str, list[DisturbedError]],
) -> Iterator[dict[str, Any]]:
    """Yields the rows of `robustness.csv`."""
    for run, measured in measurements.items():
        for row in measured:
            unit = {"unit": UNITS[row.disturbance].strip()}
            yield {"run": run} | row._asdict() | unit
