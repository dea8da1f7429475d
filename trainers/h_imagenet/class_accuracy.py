"""Which classes are hard: accuracies from a file, or from a classifier."""

import csv
import pathlib

import keras
import numpy as np

from encapnet_tf.data.images.pillow import fit
from trainers.h_imagenet.imagenet import ImageNet
from trainers.progress import ShareProgress

_BATCH = 64


def read_classes(path: str) -> list[str]:
    """Reads a list of classes: the first word of each line."""
    lines = pathlib.Path(path).read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def read_accuracies(path: str) -> dict[str, float]:
    """Reads a CSV file class,accuracy, with or without a head."""
    found = {}
    with open(path, newline="") as file:
        for number, row in enumerate(csv.reader(file)):
            try:
                name, value = row[:2]
                found[name.strip()] = float(value)
            except ValueError:
                if number == 0:
                    continue
                raise ValueError(
                    "A table of accuracies has lines class,accuracy. "
                    f"Received: {','.join(row)!r} in {path}."
                ) from None
    return found


def hardest(accuracies: dict[str, float], count: int) -> dict[str, float]:
    """Returns the classes with the lowest accuracies, the lowest first.

    Example:
        >>> hardest({"cat": 0.9, "dog": 0.4, "cow": 0.7}, 2)
        {'dog': 0.4, 'cow': 0.7}
    """
    if count > len(accuracies):
        raise ValueError(
            f"The table of accuracies must have {count} classes or more. "
            f"Received: {len(accuracies)}. Ask for fewer: --num_classes."
        )
    order = sorted(accuracies, key=lambda name: (accuracies[name], name))
    return {name: accuracies[name] for name in order[:count]}


def measure_accuracies(
    path: str, imagenet: ImageNet, white: float
) -> dict[str, float]:
    """Measures how well a classifier knows each class, on val/.

    Args:
        path: A Keras model from pictures to scores of all classes, in the
            order of `imagenet.classes`.
        imagenet: The pictures; each is fitted whole to the model's input.
        white: What the model takes for white: 1 or 255.

    Returns:
        Accuracies by class, of those that val/ has pictures of.
    """
    model = keras.models.load_model(path, compile=False)
    size = model.input_shape[1:3]
    if model.output_shape[-1] != len(imagenet.classes) or None in size:
        raise ValueError(
            f"The classifier must take pictures of one size and have a score "
            f"for each of the {len(imagenet.classes)} classes. Received: "
            f"{path} from {model.input_shape[1:]} to {model.output_shape[1:]}."
        )
    hits: dict[str, list[bool]] = {}
    labels, images = [], []

    def classify():
        batch = np.stack(images).astype(np.float32) * (white / 255)
        scores = model.predict_on_batch(batch)
        for label, best in zip(labels, scores.argmax(axis=-1), strict=True):
            hits.setdefault(label, []).append(imagenet.classes[best] == label)
        labels.clear()
        images.clear()

    classes = set(imagenet.classes)
    total, show = imagenet.count("val", classes), ShareProgress("classifying")
    for done, picture in enumerate(imagenet.pictures("val", classes)):
        show(min(done / total, 0.99))
        try:
            images.append(np.asarray(fit(picture.image(), size)))
        except OSError:
            continue
        labels.append(picture.label)
        if len(images) == _BATCH:
            classify()
    if images:
        classify()
    show.clear()
    return {name: float(np.mean(found)) for name, found in hits.items()}
