"""The graph that is served: from images, as they come, to classes."""

import tensorflow as tf

from export.graph.freezing import Inference, freeze


class Servable(tf.Module):
    """A frozen network with its preprocessing and its class names.

    Args:
        infer: From float32 images in [0, 1] to "scores" and "capsules".
        image_shape: `(H, W, C)`.
        class_names: One per score.
    """

    def __init__(
        self,
        infer: Inference,
        image_shape: tuple[int, int, int],
        class_names: tuple[str, ...],
    ):
        super().__init__()
        shape = (None, *image_shape)
        floats = tf.TensorSpec(shape, tf.float32, "images")
        pixels = tf.TensorSpec(shape, tf.uint8, "images")
        files = tf.TensorSpec((None,), tf.string, "image_bytes")
        frozen = freeze(infer, floats)

        def classify(images):
            outputs = frozen(images)
            ids = tf.argmax(outputs["scores"], axis=-1, output_type=tf.int32)
            return outputs | {"class_ids": ids}

        def named(images):
            outputs = classify(images)
            names = tf.gather(tf.constant(class_names), outputs["class_ids"])
            return outputs | {"class_names": names}

        self.lite = _function(lambda images: classify(_scaled(images)), pixels)
        self.decode = _function(lambda image: decode(image, image_shape), files)
        self._signatures = {
            "serving_default": _function(
                lambda images: named(_scaled(images)), pixels
            ),
            "serving_float": _function(named, floats),
            "serving_bytes": _function(
                lambda image_bytes: named(
                    _scaled(decode(image_bytes, image_shape))
                ),
                files,
            ),
        }

    def save(self, path: str) -> None:
        """Writes a SavedModel with the signatures for serving."""
        tf.saved_model.save(self, path, signatures=self._signatures)

    def save_lite(self, path: str) -> None:
        """Writes a SavedModel that LiteRT can take: no text."""
        module = tf.Module()
        module.lite = self.lite
        tf.saved_model.save(
            module, path, signatures={"serving_default": module.lite}
        )


def decode(files: tf.Tensor, image_shape: tuple[int, int, int]) -> tf.Tensor:
    """Decodes JPEG and PNG files of any size and fits them to `image_shape`.

    As `encapnet_tf.data.images.read_image` does, but for EXIF's orientation,
    which TensorFlow does not read: transparent parts become white, the image
    is resized until it just covers the shape, and the centre is cut out.

    Args:
        files: Encoded images `(B,)`.
        image_shape: `(H, W, C)`.

    Returns:
        uint8 `(B, H, W, C)`.
    """
    return tf.map_fn(
        lambda file: _decode_one(file, image_shape),
        files,
        fn_output_signature=tf.TensorSpec(image_shape, tf.uint8),
    )


def _decode_one(file, image_shape):
    height, width, channels = image_shape
    image = tf.cond(
        tf.io.is_jpeg(file),
        lambda: tf.cast(_decode_jpeg(file), tf.float32),
        lambda: _on_paper(tf.io.decode_png(file, channels=4)),
    )
    size = tf.cast(tf.shape(image)[:2], tf.float32)
    least = tf.constant((height, width), tf.float32)
    covering = tf.maximum(tf.round(size * tf.reduce_max(least / size)), least)
    image = tf.image.resize(image, tf.cast(covering, tf.int32), antialias=True)
    top, left = tf.unstack(tf.cast((covering - least) // 2, tf.int32))
    image = image[top : top + height, left : left + width]
    if channels == 1:
        image = tf.image.rgb_to_grayscale(image)
    return tf.cast(tf.round(tf.ensure_shape(image, image_shape)), tf.uint8)


def _decode_jpeg(file):
    # The default is quicker, and up to seven grey levels off.
    return tf.io.decode_jpeg(file, channels=3, dct_method="INTEGER_ACCURATE")


def _on_paper(image):
    """Lays an RGBA image on white."""
    image = tf.cast(image, tf.float32)
    opacity = image[..., 3:] / 255.0
    return image[..., :3] * opacity + 255.0 * (1.0 - opacity)


def _scaled(images):
    return tf.cast(images, tf.float32) / 255.0


def _function(function, spec):
    return tf.function(function, input_signature=[spec], jit_compile=False)
