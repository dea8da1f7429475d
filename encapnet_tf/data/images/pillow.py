"""Reads one image file of any common kind into an RGB array, by Pillow.

`images.graph` does the same within TensorFlow's graph.
"""

import numpy as np
from PIL import Image, ImageOps

SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
)


# One side of a square, or height and width.
Size = int | tuple[int, int]


def read_image(path, size: Size) -> np.ndarray:
    """Reads, turns upright, converts to RGB and fits to a size.

    Transparent parts come out white; of an animation the first frame is used;
    16-bit images keep their upper 8 bits.

    Args:
        path: File name.
        size: Side of the result, or its height and width.

    Returns:
        uint8 `(H, W, 3)`.

    Raises:
        OSError: The file is not an image or is damaged.
    """
    return np.asarray(fit(decode(path, path), size))


def decode(file, name) -> Image.Image:
    """Decodes an image, upright and in RGB.

    Args:
        file: Its name, or an open file.
        name: What to call it where it cannot be decoded.

    Raises:
        OSError: The file is not an image or is damaged.
    """
    try:
        with Image.open(file) as image:
            return to_rgb(ImageOps.exif_transpose(image))
    except (
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as error:  # all that Pillow's decoders raise on damaged files
        raise OSError(f"Cannot decode {name}: {error}") from error


def check_header(path):
    """Raises OSError unless the file begins like an image; reads no pixels."""
    with Image.open(path):
        pass


def to_rgb(image: Image.Image) -> Image.Image:
    """Converts any mode to RGB."""
    if image.mode.startswith("I") or image.mode == "F":
        return _high_depth(image).convert("RGB")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        paper = Image.new("RGBA", layer.size, "white")
        return Image.alpha_composite(paper, layer).convert("RGB")
    return image.convert("RGB")


def _high_depth(image):
    """Brings 16 and 32-bit greyscale to 8 bits: 65535 becomes 255."""
    values = np.asarray(image, np.float64)
    scale = 257.0 if values.max(initial=0.0) > 255.0 else 1.0
    return Image.fromarray(np.clip(values / scale, 0, 255).astype(np.uint8))


def fit(image: Image.Image, size: Size) -> Image.Image:
    """Resizes until the image just covers `size` and cuts the centre out."""
    height, width = (size, size) if isinstance(size, int) else size
    if image.size == (width, height):
        return image
    scale = max(width / image.width, height / image.height)
    wide = max(width, round(image.width * scale))
    high = max(height, round(image.height * scale))
    left, top = (wide - width) // 2, (high - height) // 2
    resized = image.resize((wide, high), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + width, top + height))


def fit_array(images: np.ndarray, size: Size) -> np.ndarray:
    """Fits every image of a uint8 array `(N, H, W, C)` to a size."""
    size = (size, size) if isinstance(size, int) else size
    if images.shape[1:3] == size:
        return images
    channels = images.shape[-1]
    fitted = np.empty((len(images), *size, channels), np.uint8)
    for index, image in enumerate(images):
        picture = Image.fromarray(image[..., 0] if channels == 1 else image)
        fitted[index] = np.asarray(fit(picture, size)).reshape(*size, channels)
    return fitted
