"""Which form a computation takes: all such choices are made here.

An operation has a textbook form and others that give the same numbers sooner
on a CPU. Which is taken depends on the device on which the operation stands,
on XLA, on number format and shapes. A GPU gets the textbook form. Inside
`plain_forms` everything does, so that a graph traced there is the same on
every machine. All times were measured on two cores with AVX2.
"""

import contextlib
import contextvars
import functools
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from encapnet_tf.tensorflow_internals import under_xla

# Channels that a group has at least, in or out: what a vector register of any
# x86 CPU holds, or, where every group is an operation of its own, enough for
# one. Measured: a third to a half of the time with groups of two.
_NATIVE_WIDTH = 8
_SPLIT_WIDTH = 32
# A kernel is normalised instead of the maps if that pays in batches of four.
_WORTHWHILE_BATCH = 4
# Up to this many coefficients of an image (1 MiB of float32) a batch is routed
# at once: a turn of the loop over images costs about 0.2 ms.
_LARGEST_AT_ONCE = 2**18
# With |Q| / epsilon <= 60 every scaling lies within exp(60) times the batch
# size of 1, inside float32's exp(+-87), so nothing overflows or is lost.
_SAFE_EXPONENT = 60.0
# More iterations become a loop, so that the graph stays small.
_MAX_UNROLLED = 32

_plain = contextvars.ContextVar("plain", default=False)


@contextlib.contextmanager
def plain_forms() -> Iterator[None]:
    """Inside, every operation takes its textbook form, on any device.

    It matters while a function is traced: one traced before keeps its form.
    Threads that are started inside do not inherit it. Grouped convolutions
    are TensorFlow's own, whose gradients need a GPU or oneDNN.

    Example:
        >>> with plain_forms():
        ...     on_tuned_cpu()
        False
    """
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def on_tuned_cpu() -> bool:
    """Whether operations made now run on a CPU, uncompiled."""
    return not (_plain.get() or _device_type() != "CPU" or under_xla())


def _device_type() -> str | None:
    """The kind of device on which an operation made now is placed."""
    if not tf.executing_eagerly():
        asked = tf.DeviceSpec.from_string(tf.no_op().device).device_type
        if asked:
            return asked
    # A function runs on the device of its caller, or TensorFlow's choice.
    with tf.init_scope():
        device = tf.zeros(()).device
    return tf.DeviceSpec.from_string(device).device_type


class Convolution(NamedTuple):
    """How to convolve.

    Attributes:
        kind: "native", TensorFlow's own kernel; "split", one per group;
            "rows", by `row_conv2d`, "rows_backward", only its gradients;
            "by_pass", by `strided_conv2d`.
        groups: How many groups are left when narrow ones are merged.
        dtype: The number format to convolve in.
    """

    kind: str
    groups: int
    dtype: tf.DType


def convolution(
    inputs: tf.Tensor, kernel: tf.Tensor, groups: int, stride: int
) -> Convolution:
    """Chooses the form of `grouped_conv2d`."""
    tuned, dtype = on_tuned_cpu(), inputs.dtype
    if groups > 1 or not tuned:
        return _grouped(kernel, groups, dtype, tuned)
    size = inputs.shape[1:3]
    kind = "native"
    if _products_are_faster(size, kernel.shape[0], stride, dtype):
        # Forward TensorFlow takes 0.5 to 0.9 of the time with 3×3 kernels and
        # in bfloat16, but twice the time with 7×7 kernels in float32.
        own = kernel.shape[0] == 3 or dtype == tf.bfloat16
        kind = "rows_backward" if own else "rows"
    elif stride > 1 and dtype == tf.float32 and size.is_fully_defined():
        # 0.85 of the time with 3×3 kernels on 32×32 maps, 0.83 on 16×16.
        kind = "by_pass"
    return Convolution(kind, 1, dtype)


def transposed_convolution(
    inputs: tf.Tensor, kernel: tf.Tensor, groups: int
) -> Convolution:
    """Chooses the form of `grouped_conv2d_transpose`."""
    return _grouped(kernel, groups, inputs.dtype, on_tuned_cpu())


def _grouped(kernel, groups, dtype, tuned):
    """Own kernel or one per group, and which groups are merged for it."""
    if groups > 1 and tuned and dtype == tf.bfloat16:
        # Groups of a few channels are quicker in a wider type.
        dtype = tf.float32
    native = groups == 1 or _native_groups(dtype)
    if native and not tuned:
        return Convolution("native", groups, dtype)
    width = max(kernel.shape[2], kernel.shape[3] // groups)
    least = _NATIVE_WIDTH if native else _SPLIT_WIDTH
    joined = next(
        count
        for count in range(1, groups + 1)
        if groups % count == 0 and (count * width >= least or count == groups)
    )
    return Convolution("native" if native else "split", groups // joined, dtype)


def _products_are_faster(size, kernel_size, stride, dtype):
    """Whether `row_conv2d` beats TensorFlow's own kernel.

    With batches of 64, forward and backward together, it takes 0.36 to 0.87 of
    the time with results of up to four rows, and 0.82 with 7×7 kernels at
    stride 2 and results of eight.
    """
    known = dtype in (tf.float32, tf.bfloat16) and size.is_fully_defined()
    if kernel_size == 1 or not known:
        return False
    most = 8 if kernel_size >= 7 and stride > 1 else 4
    return -(-max(size) // stride) <= most


def _native_groups(dtype) -> bool:
    """Whether TensorFlow's own grouped kernel is the one to use here.

    On a CPU its gradients need oneDNN and float32 or bfloat16; under XLA they
    crawl.
    """
    if _plain.get() or _device_type() != "CPU":
        return True
    return not under_xla() and _cpu_has_grouped_gradients(dtype)


@functools.cache
def _cpu_has_grouped_gradients(dtype) -> bool:
    """Tries a grouped gradient once: the honest test of oneDNN and dtype."""
    with tf.init_scope(), tf.device("/CPU:0"):
        inputs = tf.ones((2, 6, 6, 8), dtype)
        kernel = tf.ones((3, 3, 2, 8), dtype)
        call = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        try:
            # A gradient tape does not record inside an init_scope.
            tf.raw_ops.Conv2DBackpropInput(
                input_sizes=inputs.shape,
                filter=kernel,
                out_backprop=inputs,
                **call,
            )
            tf.raw_ops.Conv2DBackpropFilter(
                input=inputs,
                filter_sizes=kernel.shape,
                out_backprop=inputs,
                **call,
            )
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
            return False
    return True


def normalizes_kernel(kernel: tf.Tensor, maps: tf.TensorShape) -> bool:
    """Whether batch normalisation at inference goes into the kernel.

    The exporter, which works on textbook forms, folds more exactly.

    Args:
        kernel: The convolution's kernel.
        maps: Shape of its result, without the batch.
    """
    entries = maps.num_elements()
    return (
        on_tuned_cpu()
        and kernel.dtype == tf.float32
        and bool(entries)
        and kernel.shape.num_elements() <= _WORTHWHILE_BATCH * entries
    )


def squashes_by_products() -> bool:
    """Whether capsules in maps are squashed by small matrix products."""
    return on_tuned_cpu()


def routes_at_once(num_coefficients: int) -> bool:
    """Whether a batch is routed at once rather than image by image.

    A matter of memory, the same on every device and in plain forms.

    Args:
        num_coefficients: Routing coefficients of an image.
    """
    return num_coefficients <= _LARGEST_AT_ONCE


def solver_domain(
    domain: str, num_iterations: int, epsilon: float, largest_cost: float
) -> str:
    """Resolves "auto" for `sinkhorn` as far as it can be without the costs.

    Args:
        domain: One of `choices.SOLVER_DOMAINS`.
        num_iterations: L.
        epsilon: Weight of the entropy.
        largest_cost: No cost is above it; infinity where that is not known.

    Returns:
        "scaling", "log", or "auto" for a look at the largest cost.
    """
    if domain != "auto":
        return domain
    if _plain.get():
        return "log"  # safe for every cost
    if largest_cost <= _SAFE_EXPONENT * epsilon:
        return "scaling"
    # XLA cannot differentiate a loop within a branch.
    return "auto" if unrolls(num_iterations) else "log"


def is_safe_to_scale(costs: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Whether the kernel of these costs underflows nowhere."""
    return tf.reduce_max(tf.abs(costs)) <= _SAFE_EXPONENT * epsilon


def unrolls(num_turns: int) -> bool:
    """Whether this many turns are written out rather than looped over."""
    return num_turns <= _MAX_UNROLLED
