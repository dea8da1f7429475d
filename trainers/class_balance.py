"""What a data set lacks to be learnt, or judged, class by class."""

import numpy as np

from encapnet_tf.data import Dataset

# Ours: from here on a network gains by ignoring the rare classes.
UNEVEN = 5
_SHOWN = 5


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
