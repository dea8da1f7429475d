"""Sizes of images as people write them: 96, "96x64", (96, 64)."""

import re

# One side of a square, height and width, or text such as "96x64".
ImageSize = int | str | tuple[int, int]


def height_and_width(image_size: ImageSize | None) -> tuple[int, int] | None:
    """Reads a size: one side of a square, or height x width.

    Example:
        >>> height_and_width("96"), height_and_width("96x64")
        ((96, 96), (96, 64))
    """
    if image_size is None:
        return None
    sides = image_size
    if isinstance(image_size, str):
        if not re.fullmatch(r"\d{1,5}(x\d{1,5})?", image_size):
            raise _refusal(image_size)
        sides = tuple(int(side) for side in image_size.split("x"))
    elif isinstance(image_size, int):
        sides = (image_size,)
    sides = tuple(sides)
    if not 1 <= len(sides) <= 2 or min(sides) < 1:
        raise _refusal(image_size)
    return (sides[0], sides[-1])


def size_text(height: int, width: int) -> str:
    """Writes a size as `height_and_width` reads it.

    Example:
        >>> size_text(96, 64)
        '96x64'
    """
    return f"{height}x{width}"


def fitting(originals: list[tuple[int, int]], size: tuple[int, int]) -> str:
    """Says how images of some sizes are fitted, "" if they stay as they are.

    Args:
        originals: Heights and widths, as many as are known.
        size: Height and width of what they become.

    Example:
        >>> fitting([(480, 640), (640, 480)], (32, 32))[:55]
        'Images from 480x640 to 640x480 (height x width) pixels '
    """
    if not originals or set(originals) == {size}:
        return ""
    ordered = sorted(originals, key=lambda sides: (sides[0] * sides[1], sides))
    first, last = size_text(*ordered[0]), size_text(*ordered[-1])
    span = f"of {first}" if first == last else f"from {first} to {last}"
    return (
        f"Images {span} (height x width) pixels are fitted to "
        f"{size_text(*size)}: resized until they just cover it, the centre "
        "kept. --image_size=96 or --image_size=96x64 fits them to another size."
    )


def _refusal(image_size):
    return ValueError(
        "`image_size` must be a positive number of pixels, or height x width "
        f"as in 96x64. Received: image_size={image_size!r}."
    )
