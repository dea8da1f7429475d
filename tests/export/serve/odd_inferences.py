"""Odd requests of the Open Inference Protocol, to be drawn and varied."""

import gzip
import zlib

import numpy as np
from hypothesis import strategies as st

from export.serve.rest.open_inference.datatypes import to_binary
from tests.export.serve import served
from tests.export.serve.odd_predictions import (
    FILE,
    JPEG,
    VALUES,
    damaged,
    to_json,
)

IMAGE = served.images(1)
PIXELS = {"name": "images", "datatype": "UINT8", "shape": [1, 8, 8, 3]}
FILES = {"name": "image_bytes", "datatype": "BYTES", "shape": [2]}
BYTES = {"signature_name": "serving_bytes"}
BINARY = {"binary_data_output": True}


def sized(tensor, content):
    return tensor | {"parameters": {"binary_data_size": len(content)}}


def asking(tensor, **parameters):
    return {"inputs": [tensor], "parameters": parameters}


INFER = "/v2/models/pets/infer"
RAW = IMAGE.tobytes()
PACKED = to_binary(np.array([FILE, JPEG], object))
# Requests that are answered: JSON, and what follows it.
WHOLE = st.sampled_from(
    [
        (asking(PIXELS | {"data": IMAGE.tolist()}), b""),
        (asking(PIXELS | {"data": IMAGE.ravel().tolist()}, **BINARY), b""),
        (asking(sized(PIXELS, RAW)), RAW),
        (asking(sized(PIXELS, RAW), **BINARY), RAW),
        (asking(sized(FILES, PACKED), **BYTES), PACKED),
    ]
)
JUNK = st.one_of(
    VALUES,
    st.sampled_from(
        [
            "images", "image_bytes", "UINT8", "FP32", "BYTES", "serving_float",
            "reconstruct", [], [1, 8, 8, 3], [0, 8, 8, 3], [2**62] * 9,
            [1] * 99, [-1, 8, 8, 3], -1, 191, 193, 2**70, True,
        ]
    ),
)  # fmt: skip
KEYS = st.sampled_from(
    [
        "id", "inputs", "outputs", "parameters", "name", "datatype", "shape",
        "data", "binary_data_size", "binary_data", "binary_data_output",
        "signature_name", "shared_memory_region",
    ]
)  # fmt: skip


@st.composite
def changed(draw, whole):
    """A request with something of it exchanged, at any depth."""
    document, binary = draw(whole)
    for _ in range(draw(st.integers(1, 2))):
        document = exchanged(draw, document)
    if draw(st.booleans()):
        binary = draw(damaged(binary)) if binary else draw(st.binary())
    return document, binary


def exchanged(draw, value):
    """With another value, or without it, for one of its keys."""
    key = draw(st.one_of(st.sampled_from(sorted(value) or ["x"]), KEYS))
    inner = value.get(key)
    way = draw(st.integers(0, 7))
    if way == 0:
        return {k: v for k, v in value.items() if k != key}
    if isinstance(inner, list) and inner and isinstance(inner[0], dict):
        return value | {key: [exchanged(draw, inner[0]), *inner[way:]]}
    if isinstance(inner, dict) and inner:
        return value | {key: exchanged(draw, inner)}
    return value | {key: draw(JUNK)}


PATHS = st.one_of(
    st.sampled_from(
        [
            "/v2", "/v2/models/pets", "/v2/models/pets/versions/stable/infer",
            "/v1/models/pets/labels/stable:predict", "/v2/health/ready",
            "/v1/models/pets/labels/stable/metadata", "/seen",
        ]
    ),
    st.text(max_size=9).map(lambda text: f"/v2/models/pets/versions/{text}"),
    st.text(max_size=9).map(lambda text: f"/v2/models/{text}/infer"),
    st.text(max_size=9).map(lambda text: f"/v1/models/pets/labels/{text}"),
)  # fmt: skip
# One in six is not for inference.
TARGETS = st.tuples(
    st.integers(0, 5), st.sampled_from(["POST", "GET", "OPTIONS"]), PATHS
).map(lambda target: target[1:] if target[0] == 5 else ("POST", INFER))
INFERENCES = st.tuples(
    TARGETS,
    st.one_of(WHOLE, changed(WHOLE), st.tuples(VALUES, st.binary())),
)
# What each is made into.
VARIANTS = 20


def variants(document, binary):
    """Bodies and headers: as they should be, and as they should not."""
    text = to_json(document)
    body, size = text + binary, len(text)
    for length in (size, size - 1, size + 1, 0, "x", "\xb2"):
        yield body, headers(length=length)
    yield body, []
    yield body[: len(body) // 2], headers(length=size)
    yield body + b"x", headers(length=size)
    zipped = gzip.compress(body, 1)
    for encoding, content in (
        ("gzip", zipped), ("gzip", zipped[: len(zipped) // 2]),
        ("gzip", zipped[:30] + b"x" + zipped[30:]), ("gzip", body),
        ("gzip", zipped + zipped), ("gzip", b""), ("gzip", binary),
        ("deflate", zipped), ("deflate", zlib.compress(body)),
        ("br", body), ("", body),
    ):  # fmt: skip
        yield content, headers(length=size, encoding=encoding)


def headers(length, encoding=None):
    named = [
        (b"inference-header-content-length", str(length).encode("latin-1"))
    ]
    if encoding is not None:
        named.append((b"content-encoding", encoding.encode()))
    return named
