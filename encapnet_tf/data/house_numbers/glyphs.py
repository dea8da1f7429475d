"""Digits of many typefaces as signed distance fields, for rendering."""

import functools
import pathlib

import numpy as np

# Typefaces shipped inside matplotlib whose digits are drawn in full height.
_MATPLOTLIB_FONTS = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSans-BoldOblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-BoldItalic",
    "STIXGeneral",
    "STIXGeneralBol",
    "STIXGeneralBolIta",
    "cmb10",
    "cmr10",
    "cmss10",
    "cmtt10",
)
GLYPH_HEIGHT = 42  # of a digit, in pixels of its cell
CELL = 64  # side of the square cell a digit is centred in
_OVERSAMPLING = 2


@functools.cache
def digit_fields() -> tuple[np.ndarray, np.ndarray]:
    """Returns every typeface's ten digits as signed distance fields.

    A signed distance field holds at each point the distance to the nearest
    edge of the digit, positive inside. It can be sampled at any scale and
    angle with clean edges, and yields outlines, shadows and bevels for free.

    Returns:
        Fields `(F, 10, CELL, CELL)` and the digits' widths `(F, 10)`, both in
        units of a digit's height.
    """
    masks = np.stack([[_mask(f, d) for d in range(10)] for f in _fonts()])
    fields = _distance(~masks) - _distance(masks)
    widths = masks.any(axis=-2).sum(axis=-1) / (_OVERSAMPLING * GLYPH_HEIGHT)
    return fields.astype(np.float32), widths.astype(np.float32)


def _fonts():
    import matplotlib
    from PIL import ImageFont

    folder = pathlib.Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    paths = [str(folder / f"{name}.ttf") for name in _MATPLOTLIB_FONTS]
    fonts = [functools.partial(ImageFont.truetype, path) for path in paths]
    return [*fonts, lambda size: ImageFont.load_default(size=size)]


def _mask(font, digit):
    """Draws one digit, scaled to the glyph height and centred in its cell."""
    from PIL import Image, ImageDraw

    target = _OVERSAMPLING * GLYPH_HEIGHT
    left, top, right, bottom = font(200).getbbox(str(digit))
    drawn = font(round(200 * target / (bottom - top)))
    left, top, right, bottom = drawn.getbbox(str(digit))
    side = _OVERSAMPLING * CELL
    image = Image.new("L", (side, side))
    corner = ((side - left - right) / 2, (side - top - bottom) / 2)
    ImageDraw.Draw(image).text(corner, str(digit), fill=255, font=drawn)
    return np.asarray(image) > 127


def _distance(target):
    """Distance of every cell pixel to the nearest True pixel of `target`."""
    side = target.shape[-1]
    along_row = np.full(target.shape, float(side))
    for order in (slice(None), slice(None, None, -1)):
        position = np.where(target[..., order], np.arange(side), -2 * side)
        nearest = np.maximum.accumulate(position, axis=-1)
        gap = (np.arange(side) - nearest)[..., order]
        along_row = np.minimum(along_row, gap)
    squared = along_row[..., ::_OVERSAMPLING] ** 2
    rows = np.arange(side)
    nearest = [
        (squared + ((rows - row) ** 2)[:, None]).min(axis=-2)
        for row in rows[::_OVERSAMPLING]
    ]
    scale = _OVERSAMPLING * GLYPH_HEIGHT
    return np.sqrt(np.stack(nearest, axis=-2)) / scale
