"""Whether a written model answers as the network it came from."""

from typing import NamedTuple

import numpy as np

from export.choices import TOLERANCE
from export.prediction import OpenedModel
from trainers.scoring import error_rate

FLOAT16_TOLERANCE = 1e-2
# 8 bits move scores; what counts is that the class stays.
LEAST_AGREEMENT = 0.98
INT8_DRAWN_TOLERANCE = 0.25
NUM_IMAGES = 256
_BATCH = 100


class Parity(NamedTuple):
    """How one format compares with the Keras model.

    Attributes:
        name: The format's file.
        difference: Largest difference of a score.
        drawn_difference: Of a pixel of a reconstruction, None without decoder.
        agreement: Share of images that get the same class.
        error: Share of wrong classes, None without labels.
        error_change: That share less the Keras model's.
        passes: Whether the format may be handed over.
        demand: What it has to fulfil, in words.
    """

    name: str
    difference: float
    drawn_difference: float | None
    agreement: float
    error: float | None
    error_change: float | None
    passes: bool
    demand: str

    @property
    def objection(self) -> str:
        """Why the format is refused, if it is."""
        drawn = ""
        if self.drawn_difference is not None:
            drawn = f", of a reconstructed pixel {self.drawn_difference:.1e}"
        return (
            f"{self.name} needs {self.demand}. Received: a difference of "
            f"{self.difference:.1e}{drawn}, the same class on "
            f"{self.agreement:.1%}."
        )


class Drawn(NamedTuple):
    """What the Keras model's decoder draws.

    Attributes:
        capsules: Class capsules `(N, M, D)`.
        images: Their reconstructions `(N, H, W, C)`.
    """

    capsules: np.ndarray
    images: np.ndarray


def check_parity(
    name: str,
    quantization: str,
    model: OpenedModel,
    images: np.ndarray,
    labels: np.ndarray | None,
    expected: np.ndarray,
    tolerance: float = TOLERANCE,
    drawn: Drawn | None = None,
) -> Parity:
    """Asks a written model and compares.

    Args:
        name: The format's file.
        quantization: "none", "float16" or "int8".
        model: The written model.
        images: uint8 `(N, H, W, C)`; the first NUM_IMAGES decide.
        labels: `(N,)`, or None where they are not known.
        expected: The Keras model's scores `(N, M)`.
        tolerance: Largest difference of a score, and of a reconstructed pixel,
            without quantization.
        drawn: What the Keras model's decoder draws, None without decoder.

    Returns:
        A `Parity`.
    """
    scores = scores_of(model, images)
    deciding = slice(NUM_IMAGES)
    difference = np.abs(scores - expected)[deciding].max()
    same = scores.argmax(axis=1) == expected.argmax(axis=1)
    agreement = same[deciding].mean()
    drawn_difference = None
    if drawn is not None:
        images = model.reconstruct(drawn.capsules)
        drawn_difference = float(np.abs(images - drawn.images).max())
    if quantization == "int8":
        passes = np.isfinite(scores).all() and agreement >= LEAST_AGREEMENT
        demand = f"the same class on at least {LEAST_AGREEMENT:.0%}"
        limit = INT8_DRAWN_TOLERANCE
        if drawn is not None:
            demand += f" and pixels that differ by at most {limit:g}"
    else:
        limit = FLOAT16_TOLERANCE if quantization == "float16" else tolerance
        # A NaN is refused: it compares false.
        passes = difference <= limit
        demand = f"a difference of at most {limit:g} (see --tolerance)"
    if drawn is not None:
        passes = passes and drawn_difference <= limit
    error = change = None
    if labels is not None:
        error = error_rate(scores, labels)
        change = error - error_rate(expected, labels)
    return Parity(
        name, float(difference), drawn_difference, float(agreement), error,
        change, bool(passes), demand,
    )  # fmt: skip


def scores_of(model: OpenedModel, images: np.ndarray) -> np.ndarray:
    """Returns the scores of many images, asked for in batches."""
    return np.concatenate(
        [
            model(images[start : start + _BATCH]).scores
            for start in range(0, len(images), _BATCH)
        ]
    )
