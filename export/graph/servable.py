"""The graph that is served: from images, as they come, to classes."""

import tensorflow as tf

from encapnet_tf.data.images.graph import decode
from export.choices import DEFAULT, RECONSTRUCT
from export.graph.freezing import Inference, freeze


class Servable(tf.Module):
    """A frozen network with its preprocessing and its class names.

    Args:
        infer: From float32 images in [0, 1] to "scores" and "capsules".
        image_shape: `(H, W, C)`.
        class_names: One per score.
        reconstruct: From "capsules" to "images"; None: without a decoder.

    Attributes:
        without_text: The functions that LiteRT and ONNX can take, by
            signature: from uint8 images, and of the decoder.
    """

    def __init__(
        self,
        infer: Inference,
        image_shape: tuple[int, int, int],
        class_names: tuple[str, ...],
        reconstruct: Inference | None = None,
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

        self.decode = _function(lambda image: decode(image, image_shape), files)
        plain = _function(lambda images: classify(_scaled(images)), pixels)
        decoder = _decoding(reconstruct, plain)
        self.without_text = {DEFAULT: plain} | decoder
        self._signatures = decoder | {
            DEFAULT: _function(lambda images: named(_scaled(images)), pixels),
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
        module.lite = self.without_text[DEFAULT]
        tf.saved_model.save(module, path, signatures=self.without_text)


def _decoding(reconstruct, plain):
    """The signature of the decoder, by its name, where there is one."""
    if reconstruct is None:
        return {}
    outputs = plain.get_concrete_function().structured_outputs
    capsules = tf.TensorSpec(outputs["capsules"].shape, tf.float32, "capsules")
    return {RECONSTRUCT: _function(freeze(reconstruct, capsules), capsules)}


def _scaled(images):
    return tf.cast(images, tf.float32) / 255.0


def _function(function, spec):
    return tf.function(function, input_signature=[spec], jit_compile=False)
