"""Encoded images, looked at before anything is decoded."""

import io
from collections.abc import Iterable

from PIL import Image, ImageOps

from encapnet_tf.data.images.pillow import to_rgb
from export.serve.limits import Refusal

# What the graph of a SavedModel decodes, and what is converted for it.
_OF_THE_GRAPH = ("PNG", "JPEG")
_FORMATS = (*_OF_THE_GRAPH, "GIF", "WEBP", "BMP")
_WORDS = "PNG, JPEG, GIF, WebP or BMP"
_BEGINNINGS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")
_MODES = {1: "L", 3: "RGB"}
# Where a PNG says how many bits each number has.
_PNG_DEPTH = 24
# Stands for a size that Pillow itself refuses to look at.
_BOMB = (100_000, 100_000)
_ORIENTATION = 0x0112
# Without one of these a PNG does not say which way is up; asking Pillow
# would decode its pixels.
_PNG_SAYS = (b"eXIf", b"Orientation", b"XML:com.adobe.xmp", b"Raw profile")


def looks_like_an_image(content: bytes) -> bool:
    """Whether bytes begin as an image file does."""
    return content.startswith(_BEGINNINGS)


def check_headers(
    name: str,
    images: Iterable[bytes],
    max_megapixels: float,
    cover: tuple[int, int],
) -> None:
    """Refuses what is not an image, and images of too many pixels.

    A few kilobytes of PNG can stand for gigabytes of pixels, and so can a
    long thin image once its short side is enlarged. Only headers are read.

    Args:
        name: The field they came in.
        images: Encoded images.
        max_megapixels: What all of them together may unpack to.
        cover: Height and width that each is enlarged to cover.

    Raises:
        Refusal: One of them is not an image, or they are too large.
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


def readable(name: str, image: bytes) -> bytes:
    """Returns an image as the graph of a SavedModel can read it.

    TensorFlow knows nothing of EXIF's orientation, WebP and BMP: such a file
    is turned upright and made a PNG. All others stay as they are.

    Args:
        name: The field it came in.
        image: An encoded image whose header has been checked.

    Raises:
        Refusal: It cannot be decoded.
    """
    try:
        opened = _open(image)
        if opened.format in _OF_THE_GRAPH and not _is_turned(opened, image):
            return image
        upright = to_rgb(ImageOps.exif_transpose(opened))
        file = io.BytesIO()
        upright.save(file, "PNG", compress_level=0)
        return file.getvalue()
    except Exception:  # whatever hostile bytes make Pillow raise
        raise no_image(name) from None


def fits_as_it_is(image: bytes, shape: tuple[int, int, int]) -> bool:
    """Whether an image is a PNG that needs no resizing and no conversion.

    Args:
        image: An encoded image, of which only the header is read.
        shape: `(H, W, C)` of the images that the model takes.
    """
    opened = _open(image)
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
        f"`{name}` takes images as {_WORDS}. "
        "Received: bytes that cannot be decoded as such.",
    )


def _open(image):
    return Image.open(io.BytesIO(image), formats=_FORMATS)


def _is_turned(opened, image):
    """Whether the pixels of a PNG or JPEG do not lie as they are shown."""
    if opened.format == "PNG" and not any(word in image for word in _PNG_SAYS):
        return False
    return opened.getexif().get(_ORIENTATION, 1) in range(2, 9)


def _size(name, image):
    try:
        width, height = _open(image).size
    except Image.DecompressionBombError:
        return _BOMB
    except Exception:  # whatever hostile bytes make Pillow raise
        raise no_image(name) from None
    if not (width and height):
        raise no_image(name)
    return width, height
