"""TensorFlow Serving's JSON: requests to arrays, arrays to answers."""

import base64
import binascii
import itertools
import json
import reprlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from export.serving.limits import Refusal

DEFAULT_SIGNATURE = "serving_default"
Specs = Mapping[str, tf.TensorSpec]


class PredictRequest(NamedTuple):
    """What a `:predict` body asks for.

    Attributes:
        signature_name: The signature to run.
        inputs: Its arrays by name.
        by_rows: True for `instances`, False for `inputs`.
    """

    signature_name: str
    inputs: dict[str, np.ndarray]
    by_rows: bool


def read_request(
    body: bytes, signatures: Mapping[str, Specs]
) -> PredictRequest:
    """Reads a `:predict` body.

    Args:
        body: JSON with `instances` or `inputs`.
        signatures: Per signature, what its inputs look like.

    Returns:
        The request, of the dtypes and shapes that the signature takes.

    Raises:
        Refusal: The body is none such.
    """
    document = _parse(body)
    name = document.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise Refusal(
            400,
            "'signature_name' key must be a string value. "
            f"Received: {_short(name)}.",
        )
    if name not in signatures:
        raise Refusal(
            400,
            f'Serving signature name: "{_short(name)}" not found in '
            f"signature def. It has: {', '.join(sorted(signatures))}.",
        )
    specs = signatures[name]
    by_rows = "instances" in document
    if by_rows == ("inputs" in document):
        raise Refusal(
            400,
            "Expected exactly one of the keys 'instances' and 'inputs'. "
            f"Received: {_short(sorted(document))}.",
        )
    values = (
        _columns_of_rows(document["instances"], specs)
        if by_rows
        else _columns(document["inputs"], specs)
    )
    arrays = {key: _array(key, values[key], specs[key]) for key in specs}
    return PredictRequest(name, arrays, by_rows)


def write_answer(outputs: Mapping[str, np.ndarray], by_rows: bool) -> bytes:
    """Writes what a signature returned, in rows or in columns.

    Example:
        >>> write_answer({"y": np.array([3.5, 4.0])}, by_rows=True)
        b'{"predictions": [3.5, 4.0]}'
    """
    columns = {name: _listed(name, value) for name, value in outputs.items()}
    if not by_rows:
        answer = columns if len(columns) > 1 else next(iter(columns.values()))
        return json.dumps({"outputs": answer}).encode()
    sizes = {value.shape[:1] for value in outputs.values()}
    if len(sizes) > 1 or () in sizes:
        raise Refusal(
            400,
            "The outputs differ in their first dimension: ask in columns, "
            "with 'inputs'.",
        )
    if len(columns) == 1:
        (rows,) = columns.values()
    else:
        rows = [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ]
    return json.dumps({"predictions": rows}).encode()


def _parse(body):
    if not body.strip():
        raise Refusal(400, "JSON Parse error: The document is empty")
    try:
        document = json.loads(body)
    except RecursionError:
        raise Refusal(400, "JSON Parse error: nested too deeply") from None
    except ValueError as problem:  # also of text that is not Unicode
        raise Refusal(400, f"JSON Parse error: {problem}") from None
    if not isinstance(document, dict):
        raise Refusal(
            400, f"Expected a JSON object. Received: {_short(document)}."
        )
    return document


def _columns_of_rows(rows, specs):
    """From `instances`: one list of values per input."""
    if not isinstance(rows, list) or not rows:
        raise Refusal(
            400,
            "'instances' must be a list with at least one item. "
            f"Received: {_short(rows)}.",
        )
    if not _is_named(rows[0]):
        return {_only(specs, "instances"): rows}
    for place, row in enumerate(rows):
        if not _is_named(row) or row.keys() != specs.keys():
            raise Refusal(
                400,
                f"Item {place} of 'instances' must be an object with the "
                f"keys: {', '.join(specs)}. Received: {_short(row)}.",
            )
    return {name: [row[name] for row in rows] for name in specs}


def _columns(values, specs):
    """From `inputs`: an object, or the value of the only input."""
    if not _is_named(values):
        return {_only(specs, "inputs"): values}
    for name in specs:
        if name not in values:
            raise Refusal(
                400,
                f"Missing named input: {name} in 'inputs' object. "
                f"Received: {_short(sorted(values))}.",
            )
    return values


def _is_named(value):
    """An object of inputs by name, not the one that wraps base64."""
    return isinstance(value, dict) and value.keys() != {"b64"}


def _only(specs, key):
    if len(specs) > 1:
        raise Refusal(
            400,
            f"'{key}' must hold objects with the keys: {', '.join(specs)}. "
            "Received: plain values.",
        )
    return next(iter(specs))


def _array(name, value, spec):
    """Turns nested lists into an array of the spec's dtype and shape."""
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
    array = _typed(name, leaves, spec.dtype)
    if not spec.shape.is_compatible_with(shape):
        raise Refusal(
            400,
            f"`{name}` must have the shape {_worded(spec.shape)}. "
            f"Received: {_worded(shape)}.",
        )
    return array.reshape(shape)


def _typed(name, leaves, dtype):
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
    return Refusal(400, f"`{name}` takes {words}. Received: {_short(value)}.")


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


def _listed(name, array):
    """A JSON value; strings as text, or as base64 where the name says so."""
    if array.dtype != object:
        return array.tolist()
    write = _base64_object if name.endswith("_bytes") else _text
    return np.vectorize(write, otypes=[object])(array).tolist()


def _base64_object(value):
    return {"b64": base64.b64encode(value).decode()}


def _text(value):
    return value.decode("utf-8", "replace")


def _worded(shape):
    return str([size if size is not None else "any" for size in shape])


_short = reprlib.Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 2, 60, 60
_short = _short.repr
