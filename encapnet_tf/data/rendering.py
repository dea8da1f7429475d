"""Draws house-number crops, many at a time, in plain NumPy.

Everything is drawn on a canvas a little larger than the crop, so that blur
and shadows have something to draw on at the border.
"""

import numpy as np

from encapnet_tf.data import glyphs

SIZE = 32
_MARGIN = 4
_CANVAS = SIZE + 2 * _MARGIN
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def render(rng: np.random.Generator, count: int):
    """Renders `count` crops.

    Args:
        rng: Source of all randomness.
        count: Positive integer N.

    Returns:
        uint8 images `(N, 32, 32, 3)` and the digits in their centres, uint8
        labels `(N,)`.
    """
    labels = rng.integers(0, 10, count)
    x, y = _sign_coordinates(rng, count)
    height = rng.uniform(17.0, 27.0, (count, 1, 1)).astype(np.float32)
    distance, left, right = _number(rng, labels, x / height, y / height)
    ink, wall, rim = _colours(rng, count)
    canvas = _wall(rng, wall)
    canvas = _plate(rng, canvas, x, y, height, left, right)
    canvas = _digits(rng, canvas, distance * height, ink, rim)
    canvas = _lighting(rng, canvas)
    canvas = _camera(rng, canvas)
    inside = slice(_MARGIN, _MARGIN + SIZE)
    crop = np.clip(canvas[:, inside, inside], 0.0, 1.0)
    return (crop * 255.0 + 0.5).astype(np.uint8), labels.astype(np.uint8)


def _uniform(rng, low, high, count, *shape):
    """Draws one float32 per image, shaped to broadcast over `shape` axes."""
    drawn = rng.uniform(low, high, (count, *shape))
    return drawn.astype(np.float32)


def _sometimes(rng, probability, count):
    return (rng.random((count, 1, 1)) < probability).astype(np.float32)


def _blend(canvas, coverage, colour):
    """Paints `colour` over the canvas where `coverage` is 1."""
    return canvas + coverage[..., None] * (colour - canvas)


def _sign_coordinates(rng, count):
    """Maps canvas pixels to the sign's own axes: shift, rotate, shear."""
    axis = np.arange(_CANVAS, dtype=np.float32) - (_CANVAS - 1) / 2
    x = axis[None, None, :] - _uniform(rng, -1.4, 1.4, count, 1, 1)
    y = axis[None, :, None] - _uniform(rng, -1.4, 1.4, count, 1, 1)
    angle = rng.normal(0.0, 0.13, (count, 1, 1)).astype(np.float32)
    turned_x = np.cos(angle) * x + np.sin(angle) * y
    turned_y = np.cos(angle) * y - np.sin(angle) * x
    sheared = turned_x + _uniform(rng, -0.22, 0.22, count, 1, 1) * turned_y
    return sheared / _uniform(rng, 0.78, 1.1, count, 1, 1), turned_y


def _number(rng, labels, x, y):
    """Places the labelled digit at the centre and its neighbours beside it.

    Returns:
        Signed distance to the digits' edges, positive inside, and how far
        the number reaches to the left and right, all in digit heights.
    """
    count = len(labels)
    fields, widths = glyphs.digit_fields()
    font = rng.integers(0, len(fields), count)
    gap = _uniform(rng, 0.02, 0.25, count)
    weight = _uniform(rng, -0.008, 0.02, count, 1, 1)
    distance = _sample(fields, font, labels, x, y)
    reach = []
    for side in (-1, 1):
        digit = rng.integers(0, 10, count)
        near, far = widths[font, digit], widths[font, labels]
        offset = (near + far) / 2 + gap
        raised = y - _uniform(rng, -0.08, 0.08, count, 1, 1)
        field = _sample(
            fields, font, digit, x - side * offset[:, None, None], raised
        )
        present = rng.random(count) < 0.6
        field[~present] = -1.0
        distance = np.maximum(distance, field)
        reach.append(np.where(present, offset + near / 2, far / 2))
    return distance + weight, *reach


def _sample(fields, font, digit, x, y):
    """Reads distance fields between their pixels (bilinear)."""
    column = x * glyphs.GLYPH_HEIGHT + (glyphs.CELL - 1) / 2
    row = y * glyphs.GLYPH_HEIGHT + (glyphs.CELL - 1) / 2
    outside = np.maximum(_overshoot(column), _overshoot(row))
    column = np.clip(column, 0.0, glyphs.CELL - 1.001)
    row = np.clip(row, 0.0, glyphs.CELL - 1.001)
    j, i = column.astype(np.int32), row.astype(np.int32)
    fraction_x, fraction_y = column - j, row - i
    cell = ((font * 10 + digit) * glyphs.CELL**2).astype(np.int32)
    start = cell[:, None, None] + i * glyphs.CELL + j
    flat = fields.reshape(-1)
    upper, lower = flat[start], flat[start + glyphs.CELL]
    upper += fraction_x * (flat[start + 1] - upper)
    lower += fraction_x * (flat[start + glyphs.CELL + 1] - lower)
    inside = upper + fraction_y * (lower - upper)
    return inside - outside / glyphs.GLYPH_HEIGHT


def _overshoot(position):
    return np.maximum(np.maximum(-position, position - glyphs.CELL + 1), 0.0)


def _colours(rng, count):
    """Draws ink, wall and rim colours `(N, 1, 1, 3)`, ink clear of the wall."""
    wall_luma = rng.beta(1.1, 1.1, count) * 0.9 + 0.05
    contrast = np.clip(rng.normal(0.45, 0.2, count), 0.24, 0.9)
    sign = np.where(rng.random(count) < 1.0 - wall_luma, 1.0, -1.0)
    ink_luma = wall_luma + sign * contrast
    beyond = (ink_luma < 0.02) | (ink_luma > 0.98)
    ink_luma = np.where(beyond, wall_luma - sign * contrast, ink_luma)
    rim_luma = rng.uniform(0.0, 1.0, count)
    return tuple(
        _tinted(rng, np.clip(luma, 0.02, 0.98), 0.12)
        for luma in (ink_luma, wall_luma, rim_luma)
    )


def _tinted(rng, luma, strength):
    """Gives brightness a hue; most tints are faint, a few are strong.

    Paint, brick, brass and daylight lie near the line from orange to blue;
    greens and purples are rarer.
    """
    count = len(luma)
    warm = rng.normal(0.0, strength, (count, 1)) * np.array([1.0, 0.1, -1.0])
    green = rng.normal(0.0, strength / 4, (count, 1)) * np.array([-1, 1, -1])
    tint = (warm + green) * rng.exponential(1.0, (count, 1))
    tint -= (tint @ _LUMA)[:, None]
    return (luma[:, None] + tint).astype(np.float32)[:, None, None, :]


def _ramp(rng, count):
    """Draws a linear ramp in a random direction, about -1..1 over the crop."""
    angle = _uniform(rng, 0.0, 2 * np.pi, count, 1, 1)
    axis = np.linspace(-1.0, 1.0, _CANVAS, dtype=np.float32)
    return np.cos(angle) * axis[None, None, :] + (
        np.sin(angle) * axis[None, :, None]
    )


def _clouds(rng, count, cells):
    """Draws smooth noise with about `cells` bumps across the canvas."""
    coarse = rng.standard_normal((count, cells, cells), dtype=np.float32)
    position = np.linspace(0.0, cells - 1.0, _CANVAS)
    weight = np.maximum(
        0.0, 1.0 - np.abs(position[:, None] - np.arange(cells))
    ).astype(np.float32)
    return weight @ coarse @ weight.T


def _wall(rng, colour):
    """Paints the wall: a colour, stains, boards or bricks, and an edge."""
    count = len(colour)
    stains = _clouds(rng, count, 5) * _uniform(rng, 0.0, 0.05, count, 1, 1)
    grain = _clouds(rng, count, 20) * _uniform(rng, 0.0, 0.04, count, 1, 1)
    period = _uniform(rng, 1.5, 6.0, count, 1, 1)
    phase = _uniform(rng, 0.0, 6.3, count, 1, 1)
    boards = np.sin(_ramp(rng, count) * np.pi * period + phase) > 0.9
    boards = boards * _sometimes(rng, 0.15, count)
    canvas = colour + (stains + grain - 0.1 * boards)[..., None]
    beyond = _ramp(rng, count) - _uniform(rng, 0.5, 1.0, count, 1, 1)
    door = np.clip(beyond * 12.0, 0.0, 1.0) * _sometimes(rng, 0.25, count)
    return _blend(canvas, door, _tinted(rng, rng.random(count), 0.12))


def _plate(rng, canvas, x, y, height, left, right):
    """Sometimes frames the number with the border of a plate or tile."""
    count = len(canvas)
    border = _uniform(rng, 0.08, 0.3, count)
    middle = ((right - left) / 2)[:, None, None]
    half_width = ((right + left) / 2 + border)[:, None, None]
    half_height = (0.5 + border)[:, None, None]
    across = np.abs(x / height - middle) - half_width
    beyond = np.maximum(across, np.abs(y / height) - half_height) * height
    shown = _sometimes(rng, 0.4, count)
    frame = np.clip(beyond + 0.5, 0.0, 1.0) * shown
    canvas = _blend(canvas, frame, _tinted(rng, rng.random(count), 0.12))
    width = _uniform(rng, 0.5, 1.4, count, 1, 1)
    line = np.clip(width - np.abs(beyond), 0.0, 1.0) * shown
    line = line * _sometimes(rng, 0.5, count)
    return _blend(canvas, line, _tinted(rng, rng.random(count), 0.12))


def _digits(rng, canvas, distance, ink, rim):
    """Paints shadow, rim and bevelled digits, `distance` in pixels."""
    count = len(canvas)
    shift = rng.integers(-2, 3, (count, 2))
    shadow = np.clip(_shifted(distance, shift) / 2.0 + 0.5, 0.0, 1.0)
    shadow *= _uniform(rng, 0.2, 0.6, count, 1, 1)
    shadow *= _sometimes(rng, 0.35, count)
    canvas = canvas * (1.0 - shadow[..., None])
    width = _uniform(rng, 0.6, 1.4, count, 1, 1)
    outline = np.clip(distance + width + 0.5, 0.0, 1.0)
    outline *= _sometimes(rng, 0.15, count)
    canvas = _blend(canvas, outline, rim)
    slope_y, slope_x = np.gradient(distance, axis=(1, 2))
    light = _uniform(rng, -0.16, 0.16, count, 1, 1) * slope_x
    light = light - _uniform(rng, 0.0, 0.2, count, 1, 1) * slope_y
    bevel = light * np.exp(-np.abs(distance)) * _sometimes(rng, 0.4, count)
    fill = np.clip(distance + 0.5, 0.0, 1.0)
    return _blend(canvas, fill, ink + bevel[..., None])


def _shifted(distance, shift):
    """Moves each image by its whole number of pixels, repeating the border."""
    axis = np.arange(_CANVAS)
    rows = np.clip(axis - shift[:, :1], 0, _CANVAS - 1)
    columns = np.clip(axis - shift[:, 1:], 0, _CANVAS - 1)
    image = np.arange(len(distance))[:, None, None]
    return distance[image, rows[:, :, None], columns[:, None, :]]


def _lighting(rng, canvas):
    """Lights the scene: an uneven gradient and, sometimes, a cast shadow."""
    count = len(canvas)
    light = 1.0 + _uniform(rng, 0.0, 0.25, count, 1, 1) * _ramp(rng, count)
    edge = _ramp(rng, count) - _uniform(rng, -0.8, 0.8, count, 1, 1)
    cast = np.clip(edge * _uniform(rng, 3.0, 15.0, count, 1, 1), 0.0, 1.0)
    cast *= _uniform(rng, 0.15, 0.4, count, 1, 1) * _sometimes(rng, 0.25, count)
    warmth = _tinted(rng, np.ones(count), 0.04)
    return canvas * (light * (1.0 - cast))[..., None] * warmth


def _camera(rng, canvas):
    """Blurs, loses contrast, and adds sensor noise in blotches and pixels."""
    count = len(canvas)
    for axis in (1, 2):
        canvas = _blurred(canvas, _blur_width(rng, count), axis)
    haze = _uniform(rng, 0.0, 0.3, count, 1, 1, 1)
    canvas = canvas + haze * (_uniform(rng, 0.2, 0.8, count, 1, 1, 1) - canvas)
    blotches = np.stack([_clouds(rng, count, 12) for _ in range(3)], axis=-1)
    canvas = canvas + blotches * rng.exponential(
        0.014, (count, 1, 1, 1)
    ).astype(np.float32)
    noise = rng.standard_normal(canvas.shape, dtype=np.float32)
    level = rng.exponential(0.01, (count, 1, 1, 1)).astype(np.float32)
    return canvas + noise * level


def _blur_width(rng, count):
    return np.clip(rng.gamma(2.0, 0.42, count), 0.2, 1.9)


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
        window[axis] = slice(tap, tap + _CANVAS)
        blurred += weights[:, tap, None, None, None] * padded[tuple(window)]
    return blurred
