"""The signatures of a SavedModel, called with arrays from many threads."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from export.serving.images import check_headers, no_image
from export.serving.limits import Limits, Refusal
from export.serving.protocol import DEFAULT_SIGNATURE

# Each batch is computed by all cores; a second one would only compete.
_BATCH_THREADS = 1
# Requests are counted, and refused, before they come here.
_MAX_ENQUEUED_BATCHES = 100_000
# A tf.function of the SavedModel: encoded images to those of serving_default.
_DECODER = "decode"
# The input of encoded images.
IMAGE_BYTES = "image_bytes"


class Outputs(NamedTuple):
    """What a signature returned.

    Attributes:
        arrays: The outputs by name.
        batch: How many images were computed together; None if unbatched.
    """

    arrays: dict[str, np.ndarray]
    batch: int | None


class Signature:
    """A signature, run as it is.

    Args:
        function: The signature's concrete function.
    """

    def __init__(self, function: Callable):
        self._function = function
        self.inputs: dict[str, tf.TensorSpec] = dict(
            function.structured_input_signature[1]
        )

    def prepare(self, inputs: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
        """Does what concerns this request alone, before others join it."""
        return {
            name: tf.constant(value, self.inputs[name].dtype)
            for name, value in inputs.items()
        }

    def run(self, prepared: Mapping[str, tf.Tensor]) -> Outputs:
        """Computes the outputs."""
        try:
            outputs = self._function(**prepared)
        except tf.errors.InvalidArgumentError:
            raise Refusal(
                400,
                "The model cannot compute with these values of: "
                f"{', '.join(prepared)}.",
            ) from None
        return Outputs({k: v.numpy() for k, v in outputs.items()}, None)

    def warm_up(self, batch_sizes: list[int]) -> None:
        """Nothing is known of the values that it takes."""


class BatchedSignature(Signature):
    """A signature that computes concurrent requests together.

    Args:
        function: The signature's concrete function.
        name: Unlike any other's in this process: equal names share a queue.
        limits: Of the batches.
    """

    def __init__(self, function: Callable, name: str, limits: Limits):
        super().__init__(function)
        ((self._input, spec),) = self.inputs.items()
        self._outputs = sorted(function.structured_outputs)
        self._spec = spec

        # With every size allowed, nothing is padded; longer requests are cut.
        @tf.nondifferentiable_batch_function(
            num_batch_threads=_BATCH_THREADS,
            max_batch_size=max(limits.max_images, limits.max_batch),
            batch_timeout_micros=int(1000 * limits.batch_timeout_ms),
            allowed_batch_sizes=list(range(1, limits.max_batch + 1)),
            max_enqueued_batches=_MAX_ENQUEUED_BATCHES,
            autograph=False,
        )
        def compute(values):
            outputs = function(**{self._input: values})
            size = tf.shape(values)[0]
            sizes = tf.fill([size], size)
            return [*(outputs[k] for k in self._outputs), sizes]

        @tf.function(input_signature=[spec], autograph=False)
        def run(values):
            with tf.name_scope(name):
                return compute(values)

        self._run = run.get_concrete_function()

    @staticmethod
    def suits(function: Callable) -> bool:
        """Whether rows of the only input become rows of every output."""
        inputs = list(function.structured_input_signature[1].values())
        shapes = [
            spec.shape
            for spec in [*inputs, *function.structured_outputs.values()]
        ]
        return (
            len(inputs) == 1
            and inputs[0].dtype != tf.string
            and all(shape.rank and shape[0] is None for shape in shapes)
            and inputs[0].shape[1:].is_fully_defined()
        )

    def run(self, prepared: Mapping[str, tf.Tensor]) -> Outputs:
        """Computes the outputs, together with those of other threads."""
        *outputs, sizes = self._run(prepared[self._input])
        arrays = (output.numpy() for output in outputs)
        return Outputs(
            dict(zip(self._outputs, arrays, strict=True)),
            int(sizes.numpy().max()),
        )

    def warm_up(self, batch_sizes: list[int]) -> None:
        """Computes zeros, so that no client waits for first times."""
        for size in batch_sizes:
            zeros = tf.zeros([size, *self._spec.shape[1:]], self._spec.dtype)
            self.run({self._input: zeros})


class DecodingSignature(Signature):
    """Encoded images, each request's decoded by themselves and then batched.

    Args:
        function: The signature's concrete function.
        decode: Takes encoded images to those that `images` takes.
        images: The signature that decoded images go through.
        max_megapixels: Of one request's images.
    """

    def __init__(
        self,
        function: Callable,
        decode: Callable,
        images: BatchedSignature,
        max_megapixels: float,
    ):
        super().__init__(function)
        self._decode = decode
        self._images = images
        self._max_megapixels = max_megapixels

    def prepare(self, inputs: Mapping[str, np.ndarray]) -> dict[str, tf.Tensor]:
        """Decodes the images by the SavedModel's own graph."""
        ((name, spec),) = self._images.inputs.items()
        encoded = inputs[IMAGE_BYTES]
        cover = (spec.shape[1], spec.shape[2])
        check_headers(IMAGE_BYTES, encoded, self._max_megapixels, cover)
        try:
            return {name: self._decode(tf.constant(encoded, tf.string))}
        except tf.errors.InvalidArgumentError:
            raise no_image(IMAGE_BYTES) from None

    def run(self, prepared: Mapping[str, tf.Tensor]) -> Outputs:
        """Computes the outputs, together with those of other threads."""
        return self._images.run(prepared)


def signatures_of(
    loaded: Any, name: str, limits: Limits
) -> dict[str, Signature]:
    """Returns the signatures of a SavedModel by name, batched where possible.

    Args:
        loaded: What `tf.saved_model.load` returned.
        name: Unlike that of any other SavedModel in this process.
        limits: Of batches and images.
    """
    signatures = {}
    for key, function in loaded.signatures.items():
        signatures[key] = (
            BatchedSignature(function, f"{name}_{key}", limits)
            if BatchedSignature.suits(function)
            else Signature(function)
        )
    decode = getattr(loaded, _DECODER, None)
    default = signatures.get(DEFAULT_SIGNATURE)
    if decode is not None and isinstance(default, BatchedSignature):
        for key, signature in signatures.items():
            if list(signature.inputs) == [IMAGE_BYTES]:
                signatures[key] = DecodingSignature(
                    loaded.signatures[key],
                    decode,
                    default,
                    limits.max_megapixels,
                )
    return signatures
