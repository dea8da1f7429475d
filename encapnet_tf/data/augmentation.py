"""Random crops, flips and colours, for a whole batch at a time.

All randomness is handed in as numbers in [0, 1), `NUM_DRAWS` per image, so
that an image's augmentation is a function of its draws and nothing else.
"""

import math

import numpy as np
import tensorflow as tf

from encapnet_tf.choices import mirrors

NUM_DRAWS = 7  # row, column, flip, brightness, contrast, saturation, hue
_FACTOR = 0.2  # paper, section 4: factors in [0.8, 1.2]
_HUE = 0.2  # paper, section 4: hue shift, in turns of the colour circle
_ENLARGED = {128: 156, 224: 256}  # paper, section 4
_RGB_TO_YIQ = np.array(
    [[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]],
    np.float32,
)
_YIQ_TO_RGB = np.linalg.inv(_RGB_TO_YIQ)


def enlarged(size: int) -> int:
    """Side an image is resized to before a crop of `size` is cut from it.

    Example:
        >>> enlarged(32), enlarged(128), enlarged(224)
        (34, 156, 256)
    """
    return _ENLARGED.get(size, max(size + 1, round(size * 34 / 32)))


def augment(images, draws, size, *, augmentation: str, flip: bool):
    """Augments a batch.

    `none` returns the images. `mild` cuts a random crop out of enlarged
    images. `mirrored` also mirrors half of them, if `flip`. `strong` does both
    and changes their colours.

    Args:
        images: float32 in [0, 1], `(B, h, w, C)`: already enlarged, except
            for `none`.
        draws: float32 in [0, 1), `(B, NUM_DRAWS)`.
        size: `(H, W)` of the crop.
        augmentation: "none", "mild", "mirrored" or "strong".
        flip: Whether a mirrored image still shows its class.

    Returns:
        float32 in [0, 1], `(B, H, W, C)`.
    """
    if augmentation == "none":
        return images
    strong = augmentation == "strong"
    mirrored = draws[:, 2] < 0.5 if mirrors(augmentation, flip) else None
    images = random_crop(images, draws[:, 0], draws[:, 1], size, mirrored)
    return jitter_colours(images, draws[:, 3:7]) if strong else images


def random_crop(images, row_draws, column_draws, size, mirrored=None):
    """Cuts a crop from each image, two gathers for the whole batch.

    Args:
        images: `(B, h, w, C)`.
        row_draws: `(B,)` in [0, 1): 0 is the uppermost position.
        column_draws: `(B,)` in [0, 1): 0 is the leftmost position.
        size: `(H, W)`.
        mirrored: Optional booleans `(B,)`: the crops to mirror.

    Returns:
        `(B, H, W, C)`.
    """
    rows = _crop_indices(row_draws, tf.shape(images)[1], size[0])
    columns = _crop_indices(column_draws, tf.shape(images)[2], size[1])
    if mirrored is not None:
        columns = tf.where(mirrored[:, None], columns[:, ::-1], columns)
    images = tf.gather(images, rows, axis=1, batch_dims=1)
    return tf.gather(images, columns, axis=2, batch_dims=1)


def _crop_indices(draws, available, wanted):
    positions = tf.cast(available - wanted + 1, tf.float32)
    first = tf.cast(draws * positions, tf.int32)
    # A float32 draw just below 1 may round up to the number of positions.
    first = tf.minimum(first, available - wanted)
    return first[:, None] + tf.range(wanted)


def jitter_colours(images, draws):
    """Changes brightness, contrast, saturation and hue of each image.

    Saturation scales, and hue turns, the two colour axes of YIQ, which leaves
    the brightness Y alone; the four changes are then one 3x3 matrix and an
    offset per image, a single matrix product for the batch. (The same four
    changes through HSV took 8.1 ms against 1.4 ms for 128 images of 32x32 on
    two cores; HSV also turns hues at a constant maximum instead of a constant
    brightness.) Grey images change in brightness and contrast.

    Args:
        images: float32 in [0, 1], `(B, H, W, C)`.
        draws: `(B, 4)` in [0, 1), for brightness, contrast, saturation, hue.

    Returns:
        float32 clipped to [0, 1], `(B, H, W, C)`.
    """
    factors = 1.0 + _FACTOR * (2.0 * draws - 1.0)
    brightness, contrast, saturation = tf.unstack(factors[:, :3], axis=1)
    gain = brightness * contrast
    mean = tf.reduce_mean(images, axis=(1, 2))
    if images.shape[-1] == 3:
        mean = mean @ _RGB_TO_YIQ[:1].T
        turn = 2.0 * math.pi * _HUE * (2.0 * draws[:, 3] - 1.0)
        images = _mix(images, _colour_matrix(gain, saturation, turn))
    else:
        images = images * gain[:, None, None, None]
    offset = (1.0 - contrast)[:, None] * brightness[:, None] * mean
    return tf.clip_by_value(images + offset[:, None, None, :], 0.0, 1.0)


def _colour_matrix(gain, saturation, turn):
    """Matrices `(B, 3, 3)` that act on RGB through YIQ."""
    cosine, sine = saturation * tf.cos(turn), saturation * tf.sin(turn)
    one, zero = tf.ones_like(gain), tf.zeros_like(gain)
    in_yiq = tf.stack(
        [one, zero, zero, zero, cosine, -sine, zero, sine, cosine], axis=1
    )
    in_yiq = tf.reshape(in_yiq, (-1, 3, 3)) * gain[:, None, None]
    return _YIQ_TO_RGB @ in_yiq @ _RGB_TO_YIQ


def _mix(images, matrices):
    shape = tf.shape(images)
    pixels = tf.reshape(images, (shape[0], shape[1] * shape[2], 3))
    mixed = tf.matmul(pixels, matrices, transpose_b=True)
    return tf.ensure_shape(tf.reshape(mixed, shape), images.shape)
