"""Requests for inference: JSON, perhaps with tensors after it in binary."""

import math
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from export.choices import DEFAULT
from export.serve.limits import Refusal
from export.serve.rest.answers import JSON_LENGTH
from export.serve.rest.documents import chosen, parse_object
from export.serve.rest.open_inference.datatypes import datatype_of, from_binary
from export.serve.rest.open_inference.inference import Inference
from export.serve.rest.tensors import (
    check_shape,
    short,
    typed,
    unnested,
    worded,
)

SIGNATURE = "signature_name"
_BINARY = "binary_data"
_SIZE = "binary_data_size"


def read_inference(
    body: bytes,
    signatures: Mapping[str, Mapping[str, tf.TensorSpec]],
    json_length: str | None,
    head: Mapping[str, str],
) -> Inference:
    """Reads the body of an inference request.

    Args:
        body: JSON, and tensors in binary.
        signatures: Per signature, what its inputs look like.
        json_length: The header that says where the JSON ends, if any.
        head: What the answer begins with.

    Raises:
        Refusal: The body is not such a request.
    """
    end = _json_length(json_length, len(body))
    document = parse_object(body[:end])
    parameters = _parameters("the request", document)
    name = parameters.get(SIGNATURE, DEFAULT)
    specs = chosen(name, signatures)
    binary = _flag(parameters, "binary_data_output", False)
    outputs = _named("outputs", document)
    return Inference(
        name,
        _inputs(_named("inputs", document), specs, body[end:]),
        {key: _in_binary(key, outputs[key], binary) for key in outputs},
        binary,
        {**head, **_identifier(document)},
    )


def _identifier(document):
    """What the client calls its request, to be repeated in the answer."""
    identifier = document.get("id")
    if not isinstance(identifier, str | None):
        raise Refusal(400, f"'id' must be a string. {_got(identifier)}")
    return {} if identifier is None else {"id": identifier}


def _json_length(text, total):
    if text is None:
        return total
    if text.isascii() and text.isdigit() and int(text[:20]) <= total:
        return int(text[:20])
    raise Refusal(
        400,
        f"{JSON_LENGTH} must be the length of the JSON, at most that of the "
        f"body, {total}. {_got(text)}",
    )


def _inputs(tensors, specs, binary):
    """The arrays; those in binary follow each other in the JSON's order."""
    if tensors.keys() != specs.keys():
        raise Refusal(
            400,
            f"'inputs' must hold the inputs: {', '.join(specs)}. "
            f"{_got(sorted(tensors))}",
        )
    arrays, place = {}, 0
    for name, tensor in tensors.items():
        shape = _shape(name, tensor, specs[name])
        size = _size(name, tensor)
        if size is None:
            arrays[name] = _from_json(name, tensor["data"], specs[name], shape)
            continue
        content = binary[place : place + size]
        place += size
        arrays[name] = from_binary(name, content, specs[name].dtype, shape)
    if place != len(binary):
        raise Refusal(
            400,
            f"The sizes of the inputs in binary must add up to {len(binary)} "
            f"bytes, which follow the JSON. {_got(place)}",
        )
    return arrays


def _shape(name, tensor, spec):
    """The shape that is declared, once it and the datatype are right."""
    expected = datatype_of(spec.dtype)
    if tensor.get("datatype") != expected:
        raise Refusal(
            400,
            f"`{name}` must have the datatype {expected}. "
            f"{_got(tensor.get('datatype'))}",
        )
    shape = tensor.get("shape")
    if not isinstance(shape, list) or not all(
        type(size) is int and 0 < size < 2**63 for size in shape
    ):
        raise Refusal(
            400,
            f"`{name}` must have a 'shape' of integers above 0. {_got(shape)}",
        )
    check_shape(name, shape, spec)
    return shape


def _size(name, tensor):
    """How many bytes a tensor has in binary; None if it is in the JSON."""
    size = _own(name, tensor, {_SIZE}).get(_SIZE)
    if (size is None) != ("data" in tensor):
        raise Refusal(
            400, f"`{name}` must have either 'data' or the parameter '{_SIZE}'."
        )
    if size is not None and (type(size) is not int or size < 0):
        raise Refusal(400, f"'{_SIZE}' must be an integer. {_got(size)}")
    return size


def _from_json(name, data, spec, shape):
    """Values in the form of the shape, or one after the other."""
    form, leaves = unnested(name, data)
    if form not in (shape, [math.prod(shape)]):
        raise Refusal(
            400,
            f"The 'data' of `{name}` must be of the shape {worded(shape)}, or "
            f"flat. Received: {worded(form)}.",
        )
    return typed(name, leaves, spec.dtype).reshape(shape)


def _named(key, document):
    """The tensors of a list, by their names."""
    tensors = document.get(key, [])
    names = [
        tensor.get("name") if isinstance(tensor, dict) else None
        for tensor in (tensors if isinstance(tensors, list) else [None])
    ]
    texts = {name for name in names if isinstance(name, str)}
    if len(texts) < len(names):
        raise Refusal(
            400,
            f"'{key}' must be a list of objects with a 'name' each, none of "
            f"them twice. {_got(tensors)}",
        )
    return dict(zip(names, tensors, strict=True))


def _parameters(owner, holder):
    parameters = holder.get("parameters", {})
    if not isinstance(parameters, dict):
        raise Refusal(
            400,
            f"The 'parameters' of {owner} must be an object. "
            f"{_got(parameters)}",
        )
    return parameters


def _own(name, tensor, known):
    """A tensor's parameters; what is not known would change its meaning."""
    parameters = _parameters(f"`{name}`", tensor)
    if not parameters.keys() <= known:
        raise Refusal(
            400,
            f"The 'parameters' of `{name}` may hold: {', '.join(known)}. "
            f"{_got(sorted(parameters))}",
        )
    return parameters


def _in_binary(name, output, default):
    return _flag(_own(name, output, {_BINARY}), _BINARY, default)


def _flag(parameters, key, default):
    value = parameters.get(key, default)
    if not isinstance(value, bool):
        raise Refusal(400, f"'{key}' must be true or false. {_got(value)}")
    return value


def _got(value: Any) -> str:
    return f"Received: {short(value)}."
