"""JSON to arrays and back, rule by rule of TensorFlow Serving's REST API."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from export.serve.limits import Refusal
from export.serve.rest.tf_serving.protocol import read_request, write_answer


def spec(shape, dtype=tf.float32):
    return tf.TensorSpec(shape, dtype)


SIGNATURES = {
    "serving_default": {"x": spec((None, 2))},
    "any_rank": {"x": spec(None)},
    "pixels": {"images": spec((None, 2), tf.uint8)},
    "text": {"words": spec((None,), tf.string)},
    "flags": {"on": spec((None,), tf.bool)},
    "three": {
        "tag": spec((None,), tf.string),
        "signal": spec((None, 5), tf.int64),
        "sensor": spec((None, 2, 2)),
    },
}


def read(content, signature="serving_default"):
    if isinstance(content, dict):
        content = json.dumps({"signature_name": signature} | content).encode()
    return read_request(content, SIGNATURES)


def refusal(content, signature="serving_default"):
    with pytest.raises(Refusal) as caught:
        read(content, signature)
    assert caught.value.status == 400
    return caught.value.message


def test_the_default_signature_needs_no_name():
    request = read(b'{"instances": [[1, 2]]}')
    assert request.signature_name == "serving_default"
    assert request.by_rows
    assert request.inputs["x"].dtype == np.float32
    np.testing.assert_array_equal(request.inputs["x"], [[1, 2]])


@pytest.mark.parametrize(
    ("content", "by_rows"),
    [
        ({"instances": [[1.5, 2], [3, 4e0]]}, True),
        ({"instances": [{"x": [1.5, 2]}, {"x": [3, 4]}]}, True),
        ({"inputs": [[1.5, 2], [3, 4]]}, False),
        ({"inputs": {"x": [[1.5, 2], [3, 4]]}}, False),
        ({"inputs": {"x": [[1.5, 2], [3, 4]], "more": 1}}, False),
    ],
)
def test_rows_and_columns_in_plain_and_named_form(content, by_rows):
    request = read(content)
    assert request.by_rows is by_rows
    np.testing.assert_array_equal(request.inputs["x"], [[1.5, 2], [3, 4]])


def test_the_documentation_s_three_named_tensors_in_rows_and_columns():
    rows = {
        "instances": [
            {
                "tag": "foo",
                "signal": [1, 2, 3, 4, 5],
                "sensor": [[1, 2], [3, 4]],
            },
            {
                "tag": "bar",
                "signal": [3, 4, 1, 2, 5],
                "sensor": [[4, 5], [6, 8]],
            },
        ]
    }
    columns = {
        "inputs": {
            "tag": ["foo", "bar"],
            "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
            "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]],
        }
    }
    by_row, by_column = read(rows, "three"), read(columns, "three")
    for name in SIGNATURES["three"]:
        np.testing.assert_array_equal(
            by_row.inputs[name], by_column.inputs[name]
        )
    assert by_row.inputs["tag"].tolist() == [b"foo", b"bar"]
    assert by_row.inputs["signal"].dtype == np.int64
    assert by_row.inputs["sensor"].shape == (2, 2, 2)


@pytest.mark.parametrize("value", [1.5, [1.5, 2.5], [[1.5], [2.5]]])
def test_an_unknown_rank_takes_any(value):
    array = read({"inputs": value}, "any_rank").inputs["x"]
    np.testing.assert_array_equal(array, np.array(value, np.float32))


def test_strings_are_text_or_base64():
    words = ["plain", {"b64": "aW1hZ2UgYnl0ZXM="}, {"b64": "aW1h\nZ2U"}, "é"]
    array = read({"instances": words}, "text").inputs["words"]
    expected = [b"plain", b"image bytes", b"image", "é".encode()]
    assert array.tolist() == expected


def test_bytes_keep_their_trailing_zeros():
    array = read({"instances": [{"b64": "AAAA"}]}, "text").inputs["words"]
    assert array.tolist() == [b"\0\0\0"]


def test_booleans():
    array = read({"instances": [True, False]}, "flags").inputs["on"]
    assert array.dtype == bool
    assert array.tolist() == [True, False]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "JSON Parse error: The document is empty"),
        (b" \n", "The document is empty"),
        (b"instances = [1, 2]", "JSON Parse error: Expecting value"),
        (b'{"instances": [1, 2', "JSON Parse error"),
        (b"\xff\xfe\xfa", "JSON Parse error"),
        (b"[" * 100_000, "JSON Parse error: nested too deeply"),
        (b'{"instances": ' + b"9" * 5000 + b"}", "JSON Parse error"),
        (b"[1]", r"Expected a JSON object. Received: \[1\]"),
        (b"null", "Expected a JSON object. Received: None"),
        (b"{}", "exactly one of the keys 'instances' and 'inputs'"),
        ({"instances": [[1, 2]], "inputs": [[1, 2]]}, "exactly one of"),
        (b'{"signature_name": 100}', "'signature_name' key must be a string"),
        (b'{"signature_name": "no"}', "signature name: \"'no'\" not found"),
    ],
)
def test_documents_that_are_no_request(body, words):
    assert re.search(words, refusal(body))


@pytest.mark.parametrize("rows", [[], {}, 3, None, "text"])
def test_instances_must_be_a_list_with_something_in_it(rows):
    message = refusal({"instances": rows})
    assert "'instances' must be a list" in message
    assert "Received: " in message


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([[1, 2], [3]], "`x` must have lists of one length .* depth 1"),
        ([[1, 2], 3], "`x` must have lists of one length .* ragged"),
        ([3, [1, 2]], r"`x` takes .*numbers.* Received: \[1, 2\]"),
        ([[]], "`x` must not be empty.* depth 1"),
        ([1, 2], r"`x` must have the shape \[any, 2\]. Received: \[2\]"),
        ([[[1, 2]]], r"Received: \[1, 1, 2\]"),
        ([[1, 2, 3]], r"Received: \[1, 3\]"),
        ([["1", 2]], "`x` takes finite numbers.* Received: '1'"),
        ([[True, 2]], "`x` takes finite numbers.* Received: True"),
        ([[None, 2]], "`x` takes finite numbers.* Received: None"),
        ([[float("nan"), 2]], "`x` takes finite numbers.* Received: nan"),
        ([[float("inf"), 2]], "Received: inf"),
        ([[-float("inf"), 2]], "Received: -inf"),
        ([[1e39, 2]], "within float32. Received: 1e[+]39"),
        ([[10**400, 2]], "within float32. Received: 100"),
        ([{"b64": "aa"}], "`x` takes finite numbers"),
        ([{"y": [1, 2]}], "Item 0 of 'instances' .* keys: x"),
        ([{"x": [1, 2]}, {}], "Item 1 of 'instances'"),
        ([{"x": [1, 2]}, [1, 2]], "Item 1 of 'instances'"),
    ],
)
def test_values_that_do_not_fit_name_their_field(value, words):
    assert re.search(words, refusal({"instances": value}))


@pytest.mark.parametrize("value", [256, -1, 0.5, 1.0, True, "1", None, 10**30])
def test_pixels_are_integers_from_0_to_255(value):
    message = refusal({"instances": [[7, value]]}, "pixels")
    assert message.startswith("`images` takes integers from 0 to 255. Rec")
    assert str(value)[:5] in message


@pytest.mark.parametrize("value", [0, 255])
def test_extreme_pixels_are_taken(value):
    array = read({"instances": [[value, 7]]}, "pixels").inputs["images"]
    assert array.dtype == np.uint8
    assert array.tolist() == [[value, 7]]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "`words` takes strings or"),
        ({"b64": 3}, "`words` takes strings or"),
        ({"b64": "*"}, "`words` holds a value that is not base64"),
        ({"b64": "é"}, "`words` holds a value that is not base64"),
        ({"b64": "a"}, "`words` holds a value that is not base64"),
    ],
)
def test_what_is_no_string(value, words):
    assert words in refusal({"inputs": [value]}, "text")


def test_several_inputs_must_be_named():
    assert "must hold objects with the keys: tag" in refusal(
        {"instances": [1]}, "three"
    )
    assert "'inputs' must hold objects" in refusal({"inputs": [1]}, "three")
    assert "Missing named input: signal in 'inputs'" in refusal(
        {"inputs": {"tag": ["a"]}}, "three"
    )


def test_long_values_are_not_quoted_back_in_full():
    assert len(refusal({"instances": ["x" * 100_000]})) < 300
    assert len(refusal({"instances": {"x" * 100_000: 1}})) < 300


OUTPUTS = {
    "scores": np.array([[0.5, 0.25], [0, 1]], np.float32),
    "class_names": np.array([b"caf\xc3\xa9", b"\xff"], object),
    "image_bytes": np.array([b"\0", b"ab"], object),
}


def test_answers_in_rows():
    assert json.loads(write_answer(OUTPUTS, by_rows=True)) == {
        "predictions": [
            {
                "scores": [0.5, 0.25],
                "class_names": "café",
                "image_bytes": {"b64": "AA=="},
            },
            {
                "scores": [0, 1],
                "class_names": "\ufffd",
                "image_bytes": {"b64": "YWI="},
            },
        ]
    }


def test_answers_in_columns():
    assert json.loads(write_answer(OUTPUTS, by_rows=False)) == {
        "outputs": {
            "scores": [[0.5, 0.25], [0, 1]],
            "class_names": ["café", "\ufffd"],
            "image_bytes": [{"b64": "AA=="}, {"b64": "YWI="}],
        }
    }


def test_a_single_output_is_not_wrapped():
    outputs = {"y": np.array([3.5, 4.0])}
    assert write_answer(outputs, by_rows=False) == b'{"outputs": [3.5, 4.0]}'


@pytest.mark.parametrize("other", [np.zeros(3), np.zeros(())])
def test_rows_of_unlike_outputs_are_refused(other):
    outputs = {"a": np.zeros(2), "b": other}
    with pytest.raises(Refusal, match="differ in their first dimension"):
        write_answer(outputs, by_rows=True)
