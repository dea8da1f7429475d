"""How far apart two errors must be to mean anything."""

import math


def standard_error(
    error: float, count: int, spread: float | None = None, runs: int = 1
) -> float:
    """The standard error, from the images or the seeds, whichever is larger.

    Args:
        error: The error, or the mean over several runs.
        count: How many images it was measured on.
        spread: Standard deviation over the runs.
        runs: How many there were.

    Example:
        >>> round(standard_error(0.1, 1000), 4)
        0.0095
    """
    # One image more on either side: no error at all is luck as well.
    error = (error * count + 1) / (count + 2)
    by_images = math.sqrt(error * (1 - error) / count)
    return max(by_images, (spread or 0.0) / math.sqrt(runs))


def noise_between(one: float, other: float) -> float:
    """Two standard errors of the difference of two errors.

    Where both are measured on the same images this is rather too much.

    Args:
        one: The standard error of the one.
        other: That of the other.

    Example:
        >>> noise_between(0.03, 0.04)
        0.1
    """
    return 2 * math.hypot(one, other)
