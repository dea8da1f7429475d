"""Whether a network is right as often as its scores say."""

import pathlib
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from trainers.pictures import BLUE, GREY, ORANGE, STYLE, save

BINS = 10


class Bin(NamedTuple):
    """The images whose winning score lies in one range.

    Attributes:
        low: Lower end of the range.
        high: Upper end.
        images: How many images there are.
        score: Their mean winning score, None without images.
        right: The share of these that is right, None without images.
    """

    low: float
    high: float
    images: int
    score: float | None
    right: float | None


class Calibration(NamedTuple):
    """How far scores are from the shares of right answers.

    Attributes:
        expected_error: Mean distance of the two over the images (the expected
            calibration error), 0 at best.
        bins: The ranges of the winning score.
    """

    expected_error: float
    bins: list[Bin]

    def as_json(self) -> dict[str, Any]:
        """Returns what `evaluation.json` holds of it."""
        bins = [each._asdict() for each in self.bins]
        return {"expected_calibration_error": self.expected_error, "bins": bins}


def measure_calibration(scores: np.ndarray, labels: np.ndarray) -> Calibration:
    """Compares winning scores with how often they are right.

    Args:
        scores: Lengths of capsules or probabilities `(N, M)`, in [0, 1].
        labels: True classes `(N,)`.

    Example:
        >>> scores = np.array([[0.75, 0.1], [0.75, 0.3]])
        >>> measure_calibration(scores, np.array([0, 1])).expected_error
        0.25
    """
    winning = np.clip(scores.max(axis=1).astype(np.float64), 0, 1)
    right = scores.argmax(axis=1) == labels
    places = np.minimum((winning * BINS).astype(int), BINS - 1)
    bins, distance = [], 0.0
    for place in range(BINS):
        members = places == place
        count = int(members.sum())
        score = float(winning[members].mean()) if count else None
        share = float(right[members].mean()) if count else None
        if count:
            distance += count * abs(score - share)
        ends = (place / BINS, (place + 1) / BINS)
        bins.append(Bin(*ends, count, score, share))
    return Calibration(distance / len(labels), bins)


def reliability(
    calibration: Calibration, score_name: str, path: pathlib.Path
) -> None:
    """Draws how often the network is right at each score, and on how many.

    Args:
        calibration: What was measured.
        score_name: What the winning score is, for the axis.
        path: The PNG.
    """
    full = [each for each in calibration.bins if each.images]
    with plt.rc_context(STYLE):
        figure, (upper, lower) = plt.subplots(
            2, 1, figsize=(6, 6.6), sharex=True, layout="constrained",
            height_ratios=(3, 1),
        )  # fmt: skip
        upper.plot(
            [0, 100],
            [0, 100],
            color=GREY,
            linestyle=(0, (4, 3)),
            linewidth=1.2,
            label="as often right as the score says",
        )
        upper.bar(
            [50 * (each.low + each.high) for each in full],
            [100 * each.right for each in full],
            width=100 / BINS * 0.9, color=BLUE, alpha=0.3,
        )  # fmt: skip
        upper.plot(
            [100 * each.score for each in full],
            [100 * each.right for each in full],
            color=BLUE, marker="o", markersize=5, label="this network",
        )  # fmt: skip
        error = 100 * calibration.expected_error
        upper.set_title(
            f"Right answers by score; they differ by {error:.1f} points"
        )
        upper.set_ylabel("right answers, %")
        upper.set(xlim=(0, 100), ylim=(0, 102))
        upper.legend(loc="upper left")
        lower.bar(
            [50 * (each.low + each.high) for each in calibration.bins],
            [each.images for each in calibration.bins],
            width=100 / BINS * 0.9, color=ORANGE, alpha=0.7,
        )  # fmt: skip
        lower.set_ylabel("images")
        lower.set_xlabel(f"{score_name}, %")
        save(figure, path)
