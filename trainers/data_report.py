"""What a user should know about the data before the first step."""

import numpy as np

from encapnet_tf.data import Dataset
from trainers.recipe import Recipe

# Ours: from here on ignoring the rare classes pays for a network.
UNEVEN = 5
_SHOWN = 5


def data_report(recipe: Recipe, dataset: Dataset) -> list[str]:
    """Says how images are fitted and varied, and which classes lack some.

    Args:
        recipe: What is going to be trained.
        dataset: The data.
    """
    lines = [dataset.fitting] if dataset.fitting else []
    lines += class_warnings(dataset, recipe.class_weights)
    return [*lines, _variation(recipe, dataset)]


def _variation(recipe, dataset):
    what = {
        "none": "Images are shown whole, without variation",
        "mild": "Images are varied by random crops",
        "mirrored": "Images are varied by random crops",
        "strong": "Images are varied by random crops and colours",
    }[recipe.augmentation]
    if recipe.mirrors(dataset.flip):
        return f"{what}, and mirrored (--noflip keeps them as they are)."
    if recipe.augmentation in ("mirrored", "strong"):
        return f"{what}, never mirrored (--flip mirrors them)."
    if recipe.flip:
        how = "that takes --augmentation=strong or mirrored"
        return f"{what}, never mirrored: {how}."
    return f"{what}, never mirrored."


def class_warnings(dataset: Dataset, class_weights: str) -> list[str]:
    """Says which classes have too few images, and what helps.

    Args:
        dataset: The data; of streamed ones nothing is known.
        class_weights: "none", or "balanced" if that is done already.

    Returns:
        Sentences, none if all is well.
    """
    train, test = (
        _counts(dataset.train, dataset),
        _counts(dataset.test, dataset),
    )
    if train is None or test is None:
        return []
    names = np.array(dataset.class_names, object)
    warnings = []
    if (train == 1).any():
        warnings.append(
            f"Only one training image: {_some(names[train == 1])}. A class is "
            "not learnt from one image: add some, or leave it out."
        )
    present = np.flatnonzero(train)
    least = present[train[present].argmin()]
    most = train.argmax()
    if train[most] >= UNEVEN * train[least] and class_weights == "none":
        warnings.append(
            f"The classes are uneven: {train[most]:,} training images of "
            f"{names[most]}, {train[least]:,} of {names[least]}. With "
            "--class_weights=balanced rare classes count more."
        )
    if (test == 0).any():
        warnings.append(
            f"No test image: {_some(names[test == 0])}. The test error says "
            "nothing about that; add images."
        )
    return warnings


def _counts(split, dataset):
    labels = getattr(split, "labels", None)
    if labels is None:
        return None
    return np.bincount(labels, minlength=dataset.num_classes)


def _some(names):
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
