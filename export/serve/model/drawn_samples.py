"""How a model's samples show what is drawn, so that the page may do likewise.

A network of MNIST's digits knows them light on dark, of one size, their centre
of mass in the middle. Drawn otherwise, a digit is another image.
"""

import io
from collections.abc import Iterable
from typing import Any

import numpy as np
from PIL import Image

# Pixels nearer to the paper's grey are paper.
_TOLERANCE = 16
# Of the pixels at the edges: photographs have other things there.
_LEAST_PAPER = 0.95


def style_of(samples: Iterable[bytes]) -> dict[str, Any] | None:
    """Returns how samples are drawn, None where they are not drawings.

    Args:
        samples: PNG files of one size.

    Returns:
        "paper" and "ink", the greys from 0 to 255, and "size": the longer
        side of what is drawn, as a share of the image's.
    """
    opened = [Image.open(io.BytesIO(sample)) for sample in samples]
    if not opened or any(image.mode != "L" for image in opened):
        return None
    images = np.stack([np.asarray(image, np.int16) for image in opened])
    edges = np.concatenate(
        [images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], axis=1
    )
    paper = int(np.median(edges))
    if np.mean(abs(edges - paper) < _TOLERANCE) < _LEAST_PAPER:
        return None
    sizes = [_longer_side(abs(image - paper) >= _TOLERANCE) for image in images]
    size = float(np.median(sizes)) / max(images.shape[1:])
    ink = 255 if paper < 128 else 0
    return {"paper": paper, "ink": ink, "size": size} if size else None


def _longer_side(mask):
    sides = [np.flatnonzero(mask.any(axis=axis)) for axis in (0, 1)]
    return max(np.ptp(side) + 1 if len(side) else 0 for side in sides)
