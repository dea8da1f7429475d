"""Draws house-number crops, many at a time, in plain NumPy."""

import numpy as np

from encapnet_tf.data.house_numbers import glyphs
from encapnet_tf.data.house_numbers.scenery import (
    CANVAS,
    MARGIN,
    SIZE,
    blend,
    camera,
    lighting,
    sometimes,
    tinted,
    uniform,
    wall,
)


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
    height = rng.uniform(16.5, 27.0, (count, 1, 1)).astype(np.float32)
    distance, left, right = _number(rng, labels, x / height, y / height)
    ink, paint, rim = _colours(rng, count)
    canvas = wall(rng, paint)
    canvas = _plate(rng, canvas, x, y, height, left, right)
    canvas = _digits(rng, canvas, distance * height, ink, rim)
    canvas = lighting(rng, canvas)
    canvas = camera(rng, canvas)
    inside = slice(MARGIN, MARGIN + SIZE)
    crop = np.clip(canvas[:, :, inside, inside], 0.0, 1.0)
    pixels = (crop * 255.0 + 0.5).astype(np.uint8)
    images = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))
    return images, labels.astype(np.uint8)


def _sign_coordinates(rng, count):
    """Maps canvas pixels to the sign's own axes: shift, rotate, shear."""
    axis = np.arange(CANVAS, dtype=np.float32) - (CANVAS - 1) / 2
    x = axis[None, None, :] - uniform(rng, -1.5, 1.5, count, 1, 1)
    y = axis[None, :, None] - uniform(rng, -1.5, 1.5, count, 1, 1)
    angle = rng.normal(0.0, 0.16, (count, 1, 1)).astype(np.float32)
    turned_x = np.cos(angle) * x + np.sin(angle) * y
    turned_y = np.cos(angle) * y - np.sin(angle) * x
    sheared = turned_x + uniform(rng, -0.28, 0.28, count, 1, 1) * turned_y
    return sheared / uniform(rng, 0.78, 1.1, count, 1, 1), turned_y


def _number(rng, labels, x, y):
    """Places the labelled digit at the centre and its neighbours beside it.

    Returns:
        Signed distance to the digits' edges, positive inside, and how far
        the number reaches to the left and right, all in digit heights.
    """
    count = len(labels)
    fields, widths = glyphs.digit_fields()
    font = rng.integers(0, len(fields), count)
    gap = uniform(rng, -0.02, 0.22, count)
    weight = uniform(rng, -0.008, 0.02, count, 1, 1)
    distance = _sample(fields, font, labels, x, y)
    reach = []
    for side in (-1, 1):
        digit = rng.integers(0, 10, count)
        beside, centre = widths[font, digit], widths[font, labels]
        offset = (beside + centre) / 2 + gap
        raised = y - uniform(rng, -0.08, 0.08, count, 1, 1)
        field = _sample(
            fields, font, digit, x - side * offset[:, None, None], raised
        )
        present = rng.random(count) < 0.65
        field[~present] = -1.0
        distance = np.maximum(distance, field)
        reach.append(np.where(present, offset + beside / 2, centre / 2))
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
    """Draws ink, wall and rim colours `(N, 3, 1, 1)`, ink clear of the wall."""
    wall_luma = rng.beta(1.1, 1.1, count) * 0.9 + 0.05
    contrast = np.clip(rng.normal(0.4, 0.2, count), 0.18, 0.9)
    sign = np.where(rng.random(count) < 1.0 - wall_luma, 1.0, -1.0)
    ink_luma = wall_luma + sign * contrast
    beyond = (ink_luma < 0.02) | (ink_luma > 0.98)
    ink_luma = np.where(beyond, wall_luma - sign * contrast, ink_luma)
    rim_luma = rng.uniform(0.0, 1.0, count)
    return tuple(
        tinted(rng, np.clip(luma, 0.02, 0.98), 0.12)
        for luma in (ink_luma, wall_luma, rim_luma)
    )


def _plate(rng, canvas, x, y, height, left, right):
    """Sometimes frames the number with the border of a plate or tile."""
    count = len(canvas)
    border = uniform(rng, 0.08, 0.3, count)
    middle = ((right - left) / 2)[:, None, None]
    half_width = ((right + left) / 2 + border)[:, None, None]
    half_height = (0.5 + border)[:, None, None]
    across = np.abs(x / height - middle) - half_width
    beyond = np.maximum(across, np.abs(y / height) - half_height) * height
    shown = sometimes(rng, 0.4, count)
    frame = np.clip(beyond + 0.5, 0.0, 1.0) * shown
    canvas = blend(canvas, frame, tinted(rng, rng.random(count), 0.12))
    width = uniform(rng, 0.5, 1.4, count, 1, 1)
    line = np.clip(width - np.abs(beyond), 0.0, 1.0) * shown
    line = line * sometimes(rng, 0.5, count)
    return blend(canvas, line, tinted(rng, rng.random(count), 0.12))


def _digits(rng, canvas, distance, ink, rim):
    """Paints shadow, rim and bevelled digits, `distance` in pixels."""
    count = len(canvas)
    shift = rng.integers(-2, 3, (count, 2))
    shadow = np.clip(_shifted(distance, shift) / 2.0 + 0.5, 0.0, 1.0)
    shadow *= uniform(rng, 0.2, 0.6, count, 1, 1)
    shadow *= sometimes(rng, 0.35, count)
    canvas = canvas * (1.0 - shadow[:, None])
    width = uniform(rng, 0.6, 1.4, count, 1, 1)
    outline = np.clip(distance + width + 0.5, 0.0, 1.0)
    outline *= sometimes(rng, 0.15, count)
    canvas = blend(canvas, outline, rim)
    slope_y, slope_x = np.gradient(distance, axis=(1, 2))
    light = uniform(rng, -0.16, 0.16, count, 1, 1) * slope_x
    light = light - uniform(rng, 0.0, 0.2, count, 1, 1) * slope_y
    bevel = light * np.exp(-np.abs(distance)) * sometimes(rng, 0.4, count)
    fill = np.clip(distance + 0.5, 0.0, 1.0)
    return blend(canvas, fill, ink + bevel[:, None])


def _shifted(distance, shift):
    """Moves each image by its whole number of pixels, repeating the border."""
    axis = np.arange(CANVAS)
    rows = np.clip(axis - shift[:, :1], 0, CANVAS - 1)
    columns = np.clip(axis - shift[:, 1:], 0, CANVAS - 1)
    image = np.arange(len(distance))[:, None, None]
    return distance[image, rows[:, :, None], columns[:, None, :]]
