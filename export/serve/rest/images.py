"""Encoded images, looked at before anything is decoded."""

import io
from collections.abc import Iterable

from PIL import Image

from export.serve.limits import Refusal

_FORMATS = ("PNG", "JPEG")
_MODES = {1: "L", 3: "RGB"}
# Where a PNG says how many bits each number has.
_PNG_DEPTH = 24
# Stands for a size that Pillow itself refuses to look at.
_BOMB = (100_000, 100_000)


def check_headers(
    name: str,
    images: Iterable[bytes],
    max_megapixels: float,
    cover: tuple[int, int],
) -> None:
    """Refuses what is no image, and images that unpack to too many pixels.

    A few kilobytes of PNG can stand for gigabytes of pixels, and so can a
    long thin image once its short side is enlarged. Only headers are read.

    Args:
        name: The field they came in.
        images: Encoded images.
        max_megapixels: What all of them together may unpack to.
        cover: Height and width that each is enlarged to cover.

    Raises:
        Refusal: One of them is no image, or they are too large.
    """
    pixels = 0
    for image in images:
        width, height = _size(name, image)
        scale = max(cover[0] / height, cover[1] / width, 1)
        pixels += width * height * scale**2
        if pixels > max_megapixels * 1e6:
            raise Refusal(
                413,
                f"`{name}` may unpack to {max_megapixels:g} megapixels in "
                f"one request. Received: {pixels / 1e6:.1f} or more.",
            )


def fits_as_it_is(image: bytes, shape: tuple[int, int, int]) -> bool:
    """Whether an image is a PNG that needs no resizing and no conversion.

    Args:
        image: An encoded image, of which only the header is read.
        shape: `(H, W, C)` of the images that the model takes.
    """
    opened = Image.open(io.BytesIO(image), formats=_FORMATS)
    return (
        opened.format == "PNG"
        and opened.size == (shape[1], shape[0])
        and opened.mode == _MODES.get(shape[2])
        and image[_PNG_DEPTH] == 8
        and "transparency" not in opened.info
    )


def no_image(name: str) -> Refusal:
    """Says that something cannot be decoded."""
    return Refusal(
        400,
        f"`{name}` takes images as PNG or JPEG. "
        "Received: bytes that cannot be decoded as such.",
    )


def _size(name, image):
    try:
        width, height = Image.open(io.BytesIO(image), formats=_FORMATS).size
    except Image.DecompressionBombError:
        return _BOMB
    except Exception:  # whatever hostile bytes make Pillow raise
        raise no_image(name) from None
    if not (width and height):
        raise no_image(name)
    return width, height
