"""Decoding and fitting within TensorFlow's graph, as `images.pillow` does.

For what is streamed and for what is served. EXIF's orientation aside, which
TensorFlow does not read, both give the same pictures.
"""

import tensorflow as tf


def decode(files: tf.Tensor, image_shape: tuple[int, int, int]) -> tf.Tensor:
    """Decodes JPEG and PNG files of any size and fits them to `image_shape`.

    Transparent parts become white, the image is resized until it just covers
    the shape, and the centre is cut out.

    Args:
        files: Encoded images `(B,)`.
        image_shape: `(H, W, C)`, C being 1 or 3.

    Returns:
        uint8 `(B, H, W, C)`.
    """
    return tf.map_fn(
        lambda file: _decode_one(file, image_shape),
        files,
        fn_output_signature=tf.TensorSpec(image_shape, tf.uint8),
    )


def _decode_one(file, image_shape):
    image = tf.cond(
        tf.io.is_jpeg(file),
        lambda: tf.cast(_decode_jpeg(file), tf.float32),
        lambda: _on_paper(tf.io.decode_png(file, channels=4)),
    )
    image = fit(image, image_shape[:2])
    if image_shape[-1] == 1:
        image = tf.image.rgb_to_grayscale(image)
    return tf.cast(tf.round(tf.ensure_shape(image, image_shape)), tf.uint8)


def fit(image: tf.Tensor, size: tuple[int, int]) -> tf.Tensor:
    """Resizes until the image just covers `size` and cuts the centre out.

    Args:
        image: `(h, w, C)`, numbers from 0 to 255.
        size: `(H, W)`.

    Returns:
        float32 `(H, W, C)`.
    """
    height, width = size
    own = tf.cast(tf.shape(image)[:2], tf.float32)
    least = tf.constant(size, tf.float32)
    covering = tf.maximum(tf.round(own * tf.reduce_max(least / own)), least)
    image = tf.image.resize(image, tf.cast(covering, tf.int32), antialias=True)
    top, left = tf.unstack(tf.cast((covering - least) // 2, tf.int32))
    return image[top : top + height, left : left + width]


def _decode_jpeg(file):
    # The default is quicker, and up to seven grey levels off.
    return tf.io.decode_jpeg(file, channels=3, dct_method="INTEGER_ACCURATE")


def _on_paper(image):
    """Lays an RGBA image on white."""
    image = tf.cast(image, tf.float32)
    opacity = image[..., 3:] / 255.0
    return image[..., :3] * opacity + 255.0 * (1.0 - opacity)
