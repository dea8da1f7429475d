"""TensorFlow Serving's JSON: requests to arrays, arrays to answers."""

import base64
import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from export.choices import DEFAULT
from export.serve.limits import Refusal
from export.serve.rest.answers import Answer
from export.serve.rest.documents import chosen, parse_object
from export.serve.rest.images import looks_like_an_image
from export.serve.rest.tensors import array_of, short

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

    def answer(self, outputs: Mapping[str, np.ndarray]) -> Answer:
        """Returns what the client is told."""
        return Answer(write_answer(outputs, self.by_rows))


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
        Refusal: The body is not such a request.
    """
    document = parse_object(body, _hint(body))
    name = document.get("signature_name", DEFAULT)
    specs = chosen(name, signatures)
    by_rows = "instances" in document
    if by_rows == ("inputs" in document):
        raise Refusal(
            400,
            "Expected exactly one of the keys 'instances' and 'inputs'. "
            f"Received: {short(sorted(document))}.",
        )
    values = (
        _columns_of_rows(document["instances"], specs)
        if by_rows
        else _columns(document["inputs"], specs)
    )
    arrays = {key: array_of(key, values[key], specs[key]) for key in specs}
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


def _hint(body):
    """Says how to send what looks like an image, or a form with one."""
    if looks_like_an_image(body):
        received = "an image file"
    elif body.startswith(b"--"):
        received = "a form"
    else:
        return ""
    return (
        f". The body looks like {received}. Send JSON, with the file in "
        'base64: {"signature_name": "serving_bytes", "instances": '
        '[{"b64": "…"}]}'
    )


def _columns_of_rows(rows, specs):
    """From `instances`: one list of values per input."""
    if not isinstance(rows, list) or not rows:
        raise Refusal(
            400,
            "'instances' must be a list with at least one item. "
            f"Received: {short(rows)}.",
        )
    if not _is_named(rows[0]):
        return {_only(specs, "instances"): rows}
    for place, row in enumerate(rows):
        if not _is_named(row) or row.keys() != specs.keys():
            raise Refusal(
                400,
                f"Item {place} of 'instances' must be an object with the "
                f"keys: {', '.join(specs)}. Received: {short(row)}.",
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
                f"Received: {short(sorted(values))}.",
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
