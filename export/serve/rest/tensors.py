"""Nested lists of JSON to arrays of a dtype and shape."""

import base64
import binascii
import itertools
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from export.serve.limits import Refusal

_MAX_RANK = 32
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 2, 60, 60


def short(value: Any) -> str:
    """Returns a value as it may be quoted back to who sent it."""
    return _REPR.repr(value)


def array_of(name: str, value: Any, spec: tf.TensorSpec) -> np.ndarray:
    """Turns nested lists into an array.

    Args:
        name: The field they came in.
        value: Lists of lists of values, all of one length at each depth.
        spec: The dtype and shape it must have.

    Raises:
        Refusal: It has not.
    """
    shape, leaves = unnested(name, value)
    array = typed(name, leaves, spec.dtype)
    check_shape(name, shape, spec)
    return array.reshape(shape)


def unnested(name: str, value: Any) -> tuple[list[int], list[Any]]:
    """Returns the lengths of nested lists, and the values in them.

    Raises:
        Refusal: They differ in length, or are empty.

    Example:
        >>> unnested("x", [[1, 2, 3], [4, 5, 6]])
        ([2, 3], [1, 2, 3, 4, 5, 6])
    """
    shape, leaves = [], [value]
    while isinstance(leaves[0], list):
        sizes = {len(x) if isinstance(x, list) else None for x in leaves}
        if len(sizes) > 1:
            raise Refusal(
                400,
                f"`{name}` must have lists of one length at each depth. "
                f"Received: ragged lists at depth {len(shape)}.",
            )
        (size,) = sizes
        if not size:
            raise Refusal(
                400,
                f"`{name}` must not be empty. "
                f"Received: an empty list at depth {len(shape)}.",
            )
        shape.append(size)
        leaves = list(itertools.chain.from_iterable(leaves))
    return shape, leaves


def check_shape(name: str, shape: Sequence[int], spec: tf.TensorSpec) -> None:
    """Refuses a shape that the signature, or NumPy, does not take."""
    if len(shape) > _MAX_RANK:
        raise Refusal(
            400,
            f"`{name}` may have {_MAX_RANK} dimensions. "
            f"Received: {len(shape)}.",
        )
    if not spec.shape.is_compatible_with(shape):
        raise Refusal(
            400,
            f"`{name}` must have the shape {worded(spec.shape)}. "
            f"Received: {worded(shape)}.",
        )


def typed(name: str, leaves: list[Any], dtype: tf.DType) -> np.ndarray:
    """Turns values of JSON into a flat array.

    Raises:
        Refusal: They are not all of the dtype.
    """
    if dtype == tf.string:
        array = np.empty(len(leaves), object)
        array[:] = [_bytes(name, leaf) for leaf in leaves]
        return array
    if dtype == tf.bool:
        _require_kinds(name, leaves, {bool}, "true or false")
    elif dtype.is_integer:
        words = f"integers from {dtype.min} to {dtype.max}"
        _require_kinds(name, leaves, {int}, words)
        for extreme in (min(leaves), max(leaves)):
            if not dtype.min <= extreme <= dtype.max:
                raise _mistaken(name, words, extreme)
    else:
        return _floats(name, leaves, dtype)
    return np.array(leaves, dtype.as_numpy_dtype)


def _floats(name, leaves, dtype):
    words = f"finite numbers within {dtype.name}"
    _require_kinds(name, leaves, {int, float}, words)
    try:
        wide = np.array(leaves, np.float64)
    except OverflowError:  # an integer beyond 1e308
        raise _mistaken(name, words, max(leaves, key=abs)) from None
    outside = ~(np.abs(wide) <= float(dtype.max))
    if outside.any():
        raise _mistaken(name, words, float(wide[outside][0]))
    return wide.astype(dtype.as_numpy_dtype)


def _require_kinds(name, leaves, kinds, words):
    if not set(map(type, leaves)) <= kinds:
        wrong = next(leaf for leaf in leaves if type(leaf) not in kinds)
        raise _mistaken(name, words, wrong)


def _mistaken(name, words, value):
    message = f"`{name}` takes {words}. Received: {short(value)}."
    if isinstance(value, dict) and "b64" in value:
        message += ' Encoded images need "signature_name": "serving_bytes".'
    return Refusal(400, message)


def _bytes(name, leaf):
    if isinstance(leaf, str):
        return leaf.encode("utf-8", "surrogatepass")
    if not (isinstance(leaf, dict) and isinstance(leaf.get("b64"), str)):
        raise _mistaken(name, 'strings or {"b64": "…"}', leaf)
    text = "".join(leaf["b64"].split())
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(
            400, f"`{name}` holds a value that is not base64 in its 'b64'."
        ) from None


def worded(shape: Iterable[int | None]) -> str:
    """Returns a shape as messages show it."""
    sizes = ("any" if size is None else str(size) for size in shape)
    return f"[{', '.join(sizes)}]"
