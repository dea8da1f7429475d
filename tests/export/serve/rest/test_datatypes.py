"""Tensors in binary, of every datatype."""

import json

import numpy as np
import pytest
import tensorflow as tf

from export.serve.limits import Refusal
from export.serve.rest.open_inference.datatypes import datatype_of, to_binary
from export.serve.rest.open_inference.inference import Inference
from export.serve.rest.open_inference.request import read_inference
from tests.export.serve import served

DTYPES = [
    tf.bool, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.int8, tf.int16,
    tf.int32, tf.int64, tf.half, tf.bfloat16, tf.float32, tf.float64, tf.string,
]  # fmt: skip


def values_of(dtype):
    if dtype == tf.string:
        return np.array(
            [[b"", b"\0\xff"], [b"caf\xc3\xa9", b"x" * 300]], object
        )
    return np.array([[0, 1], [1, 0]]).astype(dtype.as_numpy_dtype)


def read(content, dtype, shape):
    size = {"binary_data_size": len(content)}
    sent = served.tensor("x", datatype_of(dtype), shape, **size)
    body, ((_, length),) = served.with_binary({"inputs": [sent]}, content)
    specs = {"serving_default": {"x": tf.TensorSpec(None, dtype)}}
    return read_inference(body, specs, length.decode(), {}).inputs["x"]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_datatype_comes_back(dtype):
    array = values_of(dtype)
    found = read(to_binary(array), dtype, [2, 2])
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_the_names_of_the_datatypes():
    assert [datatype_of(dtype) for dtype in DTYPES] == [
        "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16",
        "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "BYTES",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "dtype", "shape", "words"),
    [
        (b"\0\2", tf.bool, [2], "`x` takes bytes of 0 and 1"),
        (np.float32([1, np.nan]).tobytes(), tf.float32, [2], "finite numbers"),
        (np.float16([np.inf]).tobytes(), tf.half, [1], "finite numbers"),
        (b"\1\0\0\0", tf.string, [1], "1 strings, each after its length in 4"),
        (b"\1\0\0\0ab", tf.string, [1], "1 strings"),
        (b"\xff\xff\xff\xffab", tf.string, [1], "1 strings"),
        (b"\0\0\0", tf.string, [1], "1 strings"),
        (b"\1\0\0\0a\1\0\0", tf.string, [2], "2 strings"),
        (b"\0\0\0\0", tf.string, [2**60], "strings, each after its length"),
        (b"\0", tf.uint8, [1] * 33, "`x` may have 32 dimensions"),
    ],
)
def test_binary_that_is_wrong(content, dtype, shape, words):
    with pytest.raises(Refusal) as caught:
        read(content, dtype, shape)
    assert caught.value.status == 400
    assert words in caught.value.message


def written(outputs, binary=False):
    answer = Inference("", {}, {}, binary, {}).answer(outputs)
    return json.loads(answer.content[: answer.json_length])["outputs"]


def test_numbers_that_json_does_not_know_are_written():
    for dtype in (np.float16, tf.bfloat16.as_numpy_dtype):
        (output,) = written({"y": np.array([[0.5], [2]], dtype)})
        assert (output["shape"], output["data"]) == ([2, 1], [0.5, 2.0])
    assert written({"y": np.float32(3)})[0]["data"] == [3.0]


def test_bytes_that_are_no_text_need_binary():
    outputs = {"y": np.array([b"\xff"], object)}
    with pytest.raises(Refusal, match="`y` holds bytes that are no text"):
        written(outputs)
    (output,) = written(outputs, binary=True)
    assert output["parameters"] == {"binary_data_size": 5}
