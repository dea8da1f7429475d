"""The part of a model card that goes through the classes."""

import numpy as np

from export.version.samples import Samples
from trainers.scoring import class_errors, confusion_matrix
from trainers.tables import markdown

# Longer tables are cut to the worst.
_CLASSES = 30
# From here on a class is called rare: a fraction of the most frequent one.
_RARE = 0.2


def classes_section(
    samples: Samples, scores: np.ndarray, class_names: tuple[str, ...]
) -> str:
    """Returns training images, test errors and confusions, class by class.

    Args:
        samples: Test images with labels, and counts of training images.
        scores: The network's scores of the test images `(N, M)`.
        class_names: One per score.
    """
    balance = _balance(samples.trained_on, class_names)
    if samples.labels is None:
        return f"{balance}\n\nNo test images to count errors on."
    errors = class_errors(confusion_matrix(scores, samples.labels), class_names)
    order = range(len(errors))
    title = f"Errors on {len(samples.labels):,} test images, one view each"
    if len(errors) > _CLASSES:
        order = sorted(order, key=lambda n: -(errors[n].error or 0))[:_CLASSES]
        title += f"; the worst {_CLASSES} of {len(errors)} classes"
    rows = [["class", "training images", "test images", "error",
             "most often taken for"]]  # fmt: skip
    for label in order:
        each = errors[label]
        rows.append(
            [
                each.name.replace("|", "\\|"),
                _count(samples.trained_on, label),
                f"{each.images:,}",
                "–" if each.error is None else f"{each.error:.1%}",
                f"{each.taken_for} ({each.times})".replace("|", "\\|")
                if each.times
                else "–",
            ]
        )
    return f"{balance}\n\n{title}:\n\n{markdown(rows, '<>>><')}"


def _count(counts, label):
    return "?" if counts is None else f"{counts[label]:,}"


def _balance(counts, class_names):
    if counts is None:
        return "Training images: not counted."
    least, most = counts.argmin(), counts.argmax()
    text = f"Trained on {counts.sum():,} images"
    if counts[least] == counts[most]:
        return f"{text}, {counts[most]:,} of each class."
    text += (
        f": from {counts[least]:,} of {class_names[least]} to "
        f"{counts[most]:,} of {class_names[most]}."
    )
    if counts[least] < _RARE * counts[most]:
        text += (
            " The classes are unbalanced: see the errors of the rare ones, not "
            "only the total."
        )
    return text
