"""The datatypes of the protocol, and tensors in binary."""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from export.serve.limits import Refusal
from export.serve.rest.tensors import worded

BYTES = "BYTES"
_NAMES = {
    tf.bool: "BOOL",
    tf.half: "FP16",
    tf.bfloat16: "BF16",
    tf.float32: "FP32",
    tf.float64: "FP64",
    tf.string: BYTES,
}
# The length of each string goes before it. All numbers are little-endian, as
# the processors are on which TensorFlow runs.
_LENGTH = struct.Struct("<I")


def datatype_of(dtype: Any) -> str:
    """Returns the protocol's name of a TensorFlow or NumPy dtype.

    Example:
        >>> datatype_of(tf.uint8), datatype_of(np.dtype(object))
        ('UINT8', 'BYTES')
    """
    dtype = tf.as_dtype(dtype)
    return _NAMES.get(dtype, dtype.name.upper())


def described(specs: Mapping[str, tf.TensorSpec]) -> list[dict[str, Any]]:
    """Returns tensors as a model's metadata show them."""
    return [
        {
            "name": name,
            "datatype": datatype_of(spec.dtype),
            "shape": _sizes(spec.shape),
        }
        for name, spec in specs.items()
    ]


def from_binary(
    name: str, content: bytes, dtype: tf.DType, shape: Sequence[int]
) -> np.ndarray:
    """Reads a tensor.

    Args:
        name: The input it is for.
        content: Its values in row-major order.
        dtype: What they are.
        shape: How many of them there are, in each dimension.

    Raises:
        Refusal: These are not as many values of that dtype.
    """
    count = math.prod(shape)
    if dtype == tf.string:
        return _strings(name, content, count).reshape(shape)
    form = np.dtype(dtype.as_numpy_dtype)
    if len(content) != count * form.itemsize:
        raise Refusal(
            400,
            f"`{name}` of shape {worded(shape)} and datatype "
            f"{datatype_of(dtype)} takes {count * form.itemsize} bytes. "
            f"Received: {len(content)}.",
        )
    if dtype == tf.bool and content.strip(b"\0\1"):
        raise Refusal(400, f"`{name}` takes bytes of 0 and 1. Received: more.")
    array = np.frombuffer(content, form).reshape(shape)
    if dtype.is_floating and not np.isfinite(array).all():
        raise Refusal(
            400, f"`{name}` takes finite numbers. Received: others, too."
        )
    return array


def to_binary(array: np.ndarray) -> bytes:
    r"""Writes a tensor.

    Example:
        >>> to_binary(np.array([[b"ab", b"c"]], object))
        b'\x02\x00\x00\x00ab\x01\x00\x00\x00c'
    """
    if array.dtype != object:
        return array.tobytes()
    return b"".join(_LENGTH.pack(len(x)) + x for x in array.ravel())


def _sizes(shape):
    # An unknown rank has no words in this protocol.
    return (
        [-1]
        if shape.rank is None
        else [-1 if size is None else size for size in shape]
    )


def _strings(name, content, count):
    wrong = Refusal(
        400,
        f"`{name}` takes {count} strings, each after its length in 4 bytes. "
        f"Received: {len(content)} bytes that do not hold them.",
    )
    if count * _LENGTH.size > len(content):
        raise wrong
    array, place = np.empty(count, object), 0
    for number in range(count):
        if place + _LENGTH.size > len(content):
            raise wrong
        start = place + _LENGTH.size
        place = start + _LENGTH.unpack_from(content, place)[0]
        array[number] = content[start:place]
    if place != len(content):
        raise wrong
    return array
