"""The signatures of a SavedModel, called with arrays from many threads."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from export.choices import DEFAULT
from export.serve.limits import Limits, Refusal
from export.serve.model.session_callable import session_callable
from export.serve.rest.images import (
    check_headers,
    fits_as_it_is,
    no_image,
    readable,
)

# The input of encoded images.
IMAGE_BYTES = "image_bytes"
# A tf.function of the SavedModel: encoded images to those of the default.
_DECODER = "decode"
# An output of ours; TensorFlow allows no such name.
_BATCH_SIZES = "batch sizes"
# Each batch is computed by all cores; a second one would only compete.
_BATCH_THREADS = 1
# Requests are counted, and refused, before they come here.
_MAX_ENQUEUED_BATCHES = 100_000

Arrays = Mapping[str, np.ndarray]


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

    Made while a graph is being built, called once a session runs it.

    Args:
        function: The signature's concrete function.

    Attributes:
        inputs: What it takes, by name.
        outputs: What it returns, by name.
    """

    def __init__(self, function: Callable):
        self.inputs: dict[str, tf.TensorSpec] = dict(
            function.structured_input_signature[1]
        )
        self.outputs: dict[str, tf.TensorSpec] = {
            name: tf.TensorSpec(output.shape, output.dtype)
            for name, output in sorted(function.structured_outputs.items())
        }
        self._feeds = {
            name: tf.compat.v1.placeholder(spec.dtype, spec.shape)
            for name, spec in self.inputs.items()
        }
        self._fetches = self._compute(function)

    def bind(self, session: tf.compat.v1.Session) -> None:
        """Makes the signature ready to be called."""
        feeds, fetches = self._feeds.values(), self._fetches.values()
        self._call = session_callable(session, feeds, fetches)

    def prepare(self, inputs: Arrays) -> Arrays:
        """Does what concerns this request alone, before others join it."""
        return inputs

    def run(self, prepared: Arrays) -> Outputs:
        """Computes the outputs."""
        try:
            arrays = self._call(*(prepared[name] for name in self._feeds))
        except tf.errors.InvalidArgumentError:
            raise Refusal(
                400,
                "The model cannot compute with these values of: "
                f"{', '.join(prepared)}.",
            ) from None
        return Outputs(dict(zip(self._fetches, arrays, strict=True)), None)

    def warm_up(self, batch_sizes: list[int]) -> None:
        """Nothing is known of the values that it takes."""

    def _compute(self, function):
        tensors = function(**self._feeds)
        return {name: tensors[name] for name in self.outputs}


class BatchedSignature(Signature):
    """A signature that computes concurrent requests together.

    Args:
        function: The signature's concrete function.
        limits: Of the batches.
    """

    def __init__(self, function: Callable, limits: Limits):
        self._limits = limits
        super().__init__(function)

    @staticmethod
    def suits(function: Callable) -> bool:
        """Whether rows of the only input become rows of every output."""
        inputs = list(function.structured_input_signature[1].values())
        outputs = list(function.structured_outputs.values())
        return (
            len(inputs) == 1
            and inputs[0].dtype != tf.string
            and all(x.shape.rank and x.shape[0] is None for x in outputs)
            and inputs[0].shape.rank is not None
            and inputs[0].shape[:1].as_list() == [None]
            and inputs[0].shape[1:].is_fully_defined()
        )

    def run(self, prepared: Arrays) -> Outputs:
        """Computes the outputs, together with those of other threads."""
        arrays, _ = super().run(prepared)
        sizes = arrays.pop(_BATCH_SIZES)
        return Outputs(arrays, int(sizes.max()))

    def warm_up(self, batch_sizes: list[int]) -> None:
        """Computes zeros, so that no client waits for first times."""
        ((name, spec),) = self.inputs.items()
        for size in batch_sizes:
            shape = (size, *spec.shape[1:])
            self.run({name: np.zeros(shape, spec.dtype.as_numpy_dtype)})

    def _compute(self, function):
        ((name, values),) = self._feeds.items()
        outputs = list(self.outputs)

        # With every size allowed, nothing is padded; longer requests are cut.
        @tf.nondifferentiable_batch_function(
            num_batch_threads=_BATCH_THREADS,
            max_batch_size=max(self._limits.max_images, self._limits.max_batch),
            batch_timeout_micros=int(1000 * self._limits.batch_timeout_ms),
            allowed_batch_sizes=list(range(1, self._limits.max_batch + 1)),
            max_enqueued_batches=_MAX_ENQUEUED_BATCHES,
            autograph=False,
        )
        def compute(values):
            tensors = function(**{name: values})
            size = tf.shape(values)[0]
            return [*(tensors[key] for key in outputs), tf.fill([size], size)]

        return dict(zip([*outputs, _BATCH_SIZES], compute(values), strict=True))


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
        self._decode = decode
        self._images = images
        ((self._name, spec),) = images.inputs.items()
        self._shape = tuple(spec.shape[1:])
        self._max_megapixels = max_megapixels
        self._file = tf.compat.v1.placeholder(tf.string, ())
        self._pixels = tf.io.decode_png(self._file, channels=self._shape[2])
        super().__init__(function)

    def bind(self, session: tf.compat.v1.Session) -> None:
        """Makes the signature ready to be called."""
        super().bind(session)
        self._read = session_callable(session, [self._file], [self._pixels])

    def prepare(self, inputs: Arrays) -> Arrays:
        """Decodes the images, as the SavedModel's own graph does.

        It turns them upright, too, which that graph cannot do.
        """
        files = inputs[IMAGE_BYTES]
        cover = self._shape[:2]
        check_headers(IMAGE_BYTES, files, self._max_megapixels, cover)
        files = np.array([readable(IMAGE_BYTES, x) for x in files], object)
        try:
            return {self._name: self._decoded(files)}
        except tf.errors.InvalidArgumentError:
            raise no_image(IMAGE_BYTES) from None

    def run(self, prepared: Arrays) -> Outputs:
        """Computes the outputs, together with those of other threads."""
        return self._images.run(prepared)

    def _compute(self, function):
        return {"images": self._decode(self._feeds[IMAGE_BYTES])}

    def _decoded(self, files):
        # The SavedModel's loop over files takes five times as long to start.
        if all(fits_as_it_is(file, self._shape) for file in files):
            return np.stack([self._read(file)[0] for file in files])
        return self._call(files)[0]


def signatures_of(loaded: Any, limits: Limits) -> dict[str, Signature]:
    """Returns the signatures of a SavedModel by name, batched where possible.

    Args:
        loaded: What `tf.saved_model.load` returned in the present graph.
        limits: Of batches and images.
    """
    functions = dict(loaded.signatures)
    signatures: dict[str, Signature] = {}
    for name, function in functions.items():
        suits = BatchedSignature.suits(function)
        signatures[name] = (
            BatchedSignature(function, limits) if suits else Signature(function)
        )
    decode = getattr(loaded, _DECODER, None)
    default = signatures.get(DEFAULT)
    if decode is not None and isinstance(default, BatchedSignature):
        for name, function in functions.items():
            if list(signatures[name].inputs) == [IMAGE_BYTES]:
                signatures[name] = DecodingSignature(
                    function, decode, default, limits.max_megapixels
                )
    return signatures
