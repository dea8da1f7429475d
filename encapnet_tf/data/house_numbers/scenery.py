"""Everything around the digits: colours, walls, light and the camera.

All functions draw one value per image from a generator and work on a batch of
float32 canvases `(N, 3, CANVAS, CANVAS)` at once, colours first for speed.
"""

import numpy as np

SIZE = 32  # of the crop
MARGIN = 4  # around it, so that blur and shadows have something to draw on
CANVAS = SIZE + 2 * MARGIN
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def uniform(rng, low, high, count, *shape):
    """Draws one float32 per image, shaped to broadcast over `shape` axes."""
    drawn = rng.uniform(low, high, (count, *shape))
    return drawn.astype(np.float32)


def sometimes(rng, probability, count):
    """Draws 1 with the given probability, else 0, shaped `(N, 1, 1)`."""
    return (rng.random((count, 1, 1)) < probability).astype(np.float32)


def blend(canvas, coverage, colour):
    """Paints `colour` over the canvas where `coverage` is 1."""
    return canvas + coverage[:, None] * (colour - canvas)


def tinted(rng, luma, strength):
    """Gives brightness a hue; most tints are faint, a few are strong.

    Paint, brick, brass and daylight lie near the line from orange to blue;
    greens and purples are rarer.
    """
    count = len(luma)
    warm = rng.normal(0.0, strength, (count, 1)) * np.array([1.0, 0.1, -1.0])
    green = rng.normal(0.0, strength / 4, (count, 1)) * np.array([-1, 1, -1])
    tint = (warm + green) * rng.exponential(1.0, (count, 1))
    tint -= (tint @ _LUMA)[:, None]
    return (luma[:, None] + tint).astype(np.float32)[:, :, None, None]


def _ramp(rng, count):
    """Draws a linear ramp in a random direction, about -1..1 over the crop."""
    angle = uniform(rng, 0.0, 2 * np.pi, count, 1, 1)
    axis = np.linspace(-1.0, 1.0, CANVAS, dtype=np.float32)
    return np.cos(angle) * axis[None, None, :] + (
        np.sin(angle) * axis[None, :, None]
    )


def _clouds(rng, count, cells):
    """Draws smooth noise with about `cells` bumps across the canvas."""
    coarse = rng.standard_normal((count, cells, cells), dtype=np.float32)
    position = np.linspace(0.0, cells - 1.0, CANVAS)
    weight = np.maximum(
        0.0, 1.0 - np.abs(position[:, None] - np.arange(cells))
    ).astype(np.float32)
    return weight @ coarse @ weight.T


def wall(rng, colour):
    """Paints the wall: a colour, stains, boards or bricks, and an edge."""
    count = len(colour)
    stains = _clouds(rng, count, 5) * uniform(rng, 0.0, 0.05, count, 1, 1)
    grain = _clouds(rng, count, 20) * uniform(rng, 0.0, 0.04, count, 1, 1)
    period = uniform(rng, 1.5, 6.0, count, 1, 1)
    phase = uniform(rng, 0.0, 6.3, count, 1, 1)
    boards = np.sin(_ramp(rng, count) * np.pi * period + phase) > 0.9
    boards = boards * sometimes(rng, 0.15, count)
    canvas = colour + (stains + grain - 0.1 * boards)[:, None]
    beyond = _ramp(rng, count) - uniform(rng, 0.5, 1.0, count, 1, 1)
    door = np.clip(beyond * 12.0, 0.0, 1.0) * sometimes(rng, 0.25, count)
    return blend(canvas, door, tinted(rng, rng.random(count), 0.12))


def lighting(rng, canvas):
    """Lights the scene: an uneven gradient and, sometimes, a cast shadow."""
    count = len(canvas)
    light = 1.0 + uniform(rng, 0.0, 0.25, count, 1, 1) * _ramp(rng, count)
    edge = _ramp(rng, count) - uniform(rng, -0.8, 0.8, count, 1, 1)
    cast = np.clip(edge * uniform(rng, 3.0, 15.0, count, 1, 1), 0.0, 1.0)
    cast *= uniform(rng, 0.2, 0.5, count, 1, 1) * sometimes(rng, 0.35, count)
    warmth = tinted(rng, np.ones(count), 0.04)
    return canvas * (light * (1.0 - cast))[:, None] * warmth


def camera(rng, canvas):
    """Blurs, loses contrast, and adds sensor noise in blotches and pixels."""
    count = len(canvas)
    for axis in (2, 3):
        canvas = _blurred(canvas, _blur_width(rng, count), axis)
    haze = uniform(rng, 0.0, 0.3, count, 1, 1, 1)
    canvas = canvas + haze * (uniform(rng, 0.2, 0.8, count, 1, 1, 1) - canvas)
    blotches = np.stack([_clouds(rng, count, 12) for _ in range(3)], axis=1)
    canvas = canvas + blotches * rng.exponential(
        0.014, (count, 1, 1, 1)
    ).astype(np.float32)
    noise = rng.standard_normal(canvas.shape, dtype=np.float32)
    level = rng.exponential(0.01, (count, 1, 1, 1)).astype(np.float32)
    return canvas + noise * level


def _blur_width(rng, count):
    return np.clip(rng.gamma(2.0, 0.45, count), 0.2, 1.9)


def _blurred(canvas, width, axis):
    """Gaussian blur of each image by its own `width`, along one axis."""
    taps = np.arange(-3, 4)
    weights = np.exp(-(taps**2) / (2.0 * width[:, None] ** 2))
    weights = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    padding = [(0, 0)] * 4
    padding[axis] = (3, 3)
    padded = np.pad(canvas, padding, mode="edge")
    blurred = np.zeros_like(canvas)
    for tap in range(len(taps)):
        window = [slice(None)] * 4
        window[axis] = slice(tap, tap + CANVAS)
        blurred += weights[:, tap, None, None, None] * padded[tuple(window)]
    return blurred
