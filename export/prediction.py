"""What a model says of images, and what all ways to ask one share."""

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from export.choices import LABELS


class Prediction(NamedTuple):
    """What a model says of a batch of images.

    Attributes:
        scores: Lengths of the class capsules, or probabilities `(B, M)`.
        capsules: The class capsules `(B, M, D)`, None where there are none.
    """

    scores: np.ndarray
    capsules: np.ndarray | None


class OpenedModel(Protocol):
    """A model that can be asked.

    Attributes:
        image_shape: `(H, W, C)` of the images it takes.
        class_names: One per score.
    """

    image_shape: tuple[int, int, int]
    class_names: tuple[str, ...]

    def __call__(self, images: np.ndarray) -> Prediction:
        """Answers uint8 images `(B, H, W, C)`, any B."""

    def reconstruct(self, capsules: np.ndarray) -> np.ndarray:
        """Draws the longest of the capsules `(B, M, D)`, with a decoder."""


def prediction(outputs: Mapping[str, Any]) -> Prediction:
    """Returns what a model says, from its outputs by name."""
    arrays = {name: np.asarray(value) for name, value in outputs.items()}
    return Prediction(arrays["scores"], arrays.get("capsules"))


def read_labels(folder: pathlib.Path, count: int) -> tuple[str, ...]:
    """Returns the names beside a model; numbers where there are none."""
    path = folder / LABELS
    if not path.is_file():
        return tuple(str(label) for label in range(count))
    names = tuple(path.read_text().splitlines())
    if len(names) != count:
        raise ValueError(
            f"{path} must name the {count} classes of the model beside it. "
            f"Received: {len(names)} lines."
        )
    return names


def unreadable(path: pathlib.Path, problem: object) -> ValueError:
    """Returns the refusal of a model that cannot be read."""
    reason = str(problem).strip().splitlines() or [type(problem).__name__]
    return ValueError(
        f"{path} is damaged, or was not written by this project. "
        f"Received: {reason[0][:200]}"
    )
