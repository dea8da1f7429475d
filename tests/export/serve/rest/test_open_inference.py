"""The Open Inference Protocol v2, rule by rule of its specification."""

import json
import struct

import numpy as np
import pytest

from export.serve.rest.open_inference.datatypes import to_binary
from tests.export.serve import served
from tests.export.serve.served import tensor, with_binary

IMAGES = served.images(3)
FILES = [served.png(image) for image in IMAGES]
INFER = "/v2/models/pets/infer"
LENGTH = b"inference-header-content-length"


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return served.Served(folder)


def pixels(data=None, shape=(3, 8, 8, 3), **parameters):
    return tensor("images", "UINT8", shape, data, **parameters)


def infer(pets, document, *binary, path=INFER):
    if not binary:
        return pets.ask("POST", path, document)
    body, headers = with_binary(document, *binary)
    return pets.ask("POST", path, body, headers=headers)


def arrays(answer):
    """The outputs of an answer, in JSON or in binary."""
    assert answer.status == 200, answer
    length = answer.headers.get(LENGTH.decode())
    kind = "application/json" if length is None else "application/octet-stream"
    assert answer.headers["content-type"] == kind
    end = int(length or len(answer.body))
    rest, found = answer.body[end:], {}
    for output in json.loads(answer.body[:end])["outputs"]:
        size = output.get("parameters", {}).get("binary_data_size")
        assert (size is None) == ("data" in output)
        values, rest = output.get("data"), rest[size or 0 :]
        if size is not None:
            values = read_binary(output["datatype"], answer, len(rest), size)
        found[output["name"]] = np.array(values).reshape(output["shape"])
    assert rest == b""
    return found


def read_binary(datatype, answer, left, size):
    end = len(answer.body) - left
    content = answer.body[end - size : end]
    if datatype != "BYTES":
        kind = {"FP32": "<f4", "INT32": "<i4"}[datatype]
        return np.frombuffer(content, kind)
    texts = []
    while content:
        (length,) = struct.unpack("<I", content[:4])
        texts.append(content[4 : 4 + length].decode())
        content = content[4 + length :]
    return texts


def assert_like_tf_serving(pets, answer):
    """The same numbers, to the last digit, as of TF Serving's route."""
    columns = pets.predict({"inputs": IMAGES.tolist()}).json["outputs"]
    found = arrays(answer)
    assert found.keys() == columns.keys()
    for name, values in columns.items():
        np.testing.assert_array_equal(
            found[name], np.array(values, found[name].dtype)
        )


@pytest.mark.parametrize("path", ["", "/versions/1"])
def test_metadata_of_the_model(pets, path):
    answer = pets.get(f"/v2/models/pets{path}")
    assert (answer.status, answer.headers["content-type"]) == (
        200, "application/json",
    )  # fmt: skip
    outputs = [
        tensor("capsules", "FP32", [-1, 3, 4]),
        tensor("class_ids", "INT32", [-1]),
        tensor("class_names", "BYTES", [-1]),
        tensor("scores", "FP32", [-1, 3]),
    ]
    assert answer.json == {
        "name": "pets",
        "versions": ["1"],
        "platform": "tensorflow_savedmodel",
        "inputs": [tensor("images", "UINT8", [-1, 8, 8, 3])],
        "outputs": outputs,
    }


def test_metadata_of_another_signature(pets):
    answer = pets.get("/v2/models/pets", query=b"signature_name=serving_bytes")
    assert answer.json["inputs"] == [tensor("image_bytes", "BYTES", [-1])]
    answer = pets.get("/v2/models/pets", query=b"signature_name=x")
    assert answer.status == 400
    assert "It has: serving_bytes, serving_default, serv" in answer.error


def test_the_server(pets):
    about = pets.get("/v2").json
    assert pets.get("/v2/").json == about
    assert about["name"] == "encapnet_tf"
    assert "binary_tensor_data" in about["extensions"]
    assert pets.get("/v2/health/live").json == {"live": True}
    assert pets.get("/v2/health/ready").json == {"ready": True}
    ready = {"name": "pets", "ready": True}
    assert pets.get("/v2/models/pets/ready").json == ready
    assert pets.get("/v2/models/pets/versions/1/ready").json == ready


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/v2/models/dogs", 404,
         "'dogs' is not served. There is: pets, versions 1."),
        ("GET", "/v2/models/dogs/ready", 404, "'dogs' is not served"),
        ("GET", "/v2/models/pets/versions/9", 404, "version '9' is not"),
        ("GET", "/v2/models/pets/versions/x/ready", 404, "version 'x' is not"),
        ("POST", "/v2/models/dogs/infer", 404, "'dogs' is not served"),
        ("POST", "/v2/models/pets/versions/01/infer", 404, "version '01' is"),
        ("GET", INFER, 405, "Method Not Allowed"),
        ("POST", "/v2/models/pets", 405, "Method Not Allowed"),
        ("GET", "/v2/nothing", 404, "Not Found"),
        ("GET", "/v2/models", 404, "Not Found"),
    ],
)  # fmt: skip
def test_errors_of_paths(pets, method, path, status, words):
    answer = pets.ask(method, path, {"inputs": [pixels(IMAGES.tolist())]})
    assert answer.status == status
    assert words in answer.error


@pytest.mark.parametrize("path", [INFER, "/v2/models/pets/versions/1/infer"])
@pytest.mark.parametrize("data", [IMAGES.tolist(), IMAGES.ravel().tolist()])
def test_json_nested_and_flat(pets, path, data):
    answer = infer(pets, {"inputs": [pixels(data)]}, path=path)
    head = {k: v for k, v in answer.json.items() if k != "outputs"}
    assert head == {"model_name": "pets", "model_version": "1"}
    assert_like_tf_serving(pets, answer)


def test_binary_in_both_directions(pets):
    content = IMAGES.tobytes()
    sent = [pixels(binary_data_size=len(content))]
    assert_like_tf_serving(pets, infer(pets, {"inputs": sent}, content))
    for document, body in (
        ({"inputs": sent}, [content]),
        ({"inputs": [pixels(IMAGES.tolist())]}, []),
    ):
        document["parameters"] = {"binary_data_output": True}
        answer = infer(pets, document, *body)
        assert LENGTH.decode() in answer.headers
        assert_like_tf_serving(pets, answer)


@pytest.mark.parametrize("binary", [False, True])
def test_files_through_another_signature(pets, binary):
    document = {"parameters": {"signature_name": "serving_bytes"}}
    if binary:
        content = to_binary(np.array(FILES, object))
        size = {"binary_data_size": len(content)}
        document["inputs"] = [tensor("image_bytes", "BYTES", [3], **size)]
        answer = infer(pets, document, content)
    else:
        texts = [served.b64(file) for file in FILES]
        document["inputs"] = [tensor("image_bytes", "BYTES", [3], texts)]
        answer = infer(pets, document)
    assert_like_tf_serving(pets, answer)


def test_an_id_is_repeated_whatever_it_is(pets):
    for name in ("42", "", "\ud800 \n"):
        document = {"id": name, "inputs": [pixels(IMAGES.tolist())]}
        assert infer(pets, document).json["id"] == name
    assert "id" not in infer(pets, {"inputs": [pixels(IMAGES.tolist())]}).json


def test_outputs_in_the_order_and_form_that_is_asked_for(pets):
    document = {
        "inputs": [pixels(IMAGES.tolist())],
        "parameters": {"binary_data_output": True},
        "outputs": [
            {"name": "scores", "parameters": {"binary_data": False}},
            {"name": "class_ids"},
        ],
    }
    answer = infer(pets, document)
    end = int(answer.headers[LENGTH.decode()])
    scores, ids = json.loads(answer.body[:end])["outputs"]
    assert (scores["name"], ids["name"]) == ("scores", "class_ids")
    assert ("data" in scores, "data" in ids) == (True, False)
    columns = pets.predict({"inputs": IMAGES.tolist()}).json["outputs"]
    found = arrays(answer)
    np.testing.assert_array_equal(found["class_ids"], columns["class_ids"])
    np.testing.assert_array_equal(found["scores"], columns["scores"])


GOOD = pixels(IMAGES.tolist())
REFUSED = {
    "nothing": (b"", "The document is empty"),
    "no JSON": (b"{]", "JSON Parse error"),
    "a list": ([], "Expected a JSON object. Received: []."),
    "nested": (b"[" * 100_000, "nested too deeply"),
    "no inputs": ({}, "'inputs' must hold the inputs: images. Received: []"),
    "inputs are none": ({"inputs": None}, "'inputs' must be a list of objects"),
    "an input without a name": ({"inputs": [{}]}, "with a 'name' each"),
    "twice": ({"inputs": [GOOD, GOOD]}, "none of them twice"),
    "another name": ({"inputs": [GOOD | {"name": "x"}]}, "Received: ['x']"),
    "one too many": (
        {"inputs": [GOOD, GOOD | {"name": "x"}]}, "the inputs: images. Rec",
    ),
    "datatype": (
        {"inputs": [GOOD | {"datatype": "FP32"}]},
        "`images` must have the datatype UINT8. Received: 'FP32'.",
    ),
    "no datatype": (
        {"inputs": [GOOD | {"datatype": ["UINT8"]}]}, "the datatype UINT8",
    ),
    "shape": (
        {"inputs": [GOOD | {"shape": [3, 8, 8, 1]}]},
        "must have the shape [any, 8, 8, 3]. Received: [3, 8, 8, 1].",
    ),
    "shape is none": ({"inputs": [GOOD | {"shape": 3}]}, "integers above 0"),
    "half": ({"inputs": [GOOD | {"shape": [3, 8, 8, 1.5]}]}, "above 0"),
    "true": ({"inputs": [GOOD | {"shape": [True, 8, 8, 3]}]}, "above 0"),
    "no images": ({"inputs": [GOOD | {"shape": [0, 8, 8, 3]}]}, "above 0"),
    "huge": (
        {"inputs": [GOOD | {"shape": [2**62, 8, 8, 3]}]},
        "must be of the shape [4611686018427387904, 8, 8, 3], or flat",
    ),
    "fewer values": (
        {"inputs": [GOOD | {"data": IMAGES[:2].tolist()}]},
        "or flat. Received: [2, 8, 8, 3].",
    ),
    "another form": (
        {"inputs": [GOOD | {"data": IMAGES.reshape(6, 96).tolist()}]},
        "or flat. Received: [6, 96].",
    ),
    "ragged": ({"inputs": [GOOD | {"data": [[1], 2]}]}, "ragged"),
    "values": ({"inputs": [pixels([256] * 576)]}, "integers from 0 to 255"),
    "text": ({"inputs": [pixels(["x"] * 576)]}, "integers from 0 to 255"),
    "no data": ({"inputs": [pixels()]}, "either 'data' or the parameter"),
    "data in memory": (
        {"inputs": [pixels(shared_memory_region="x")]},
        "may hold: binary_data_size. Received: ['shared_memory_region'].",
    ),
    "both": (
        {"inputs": [pixels([1], binary_data_size=1)]}, "either 'data' or",
    ),
    "an output": (
        {"inputs": [GOOD], "outputs": [{"name": "x"}]},
        "'outputs' may name: capsules, class_ids, class_names, scores. Rec",
    ),
    "classification": (
        {"inputs": [GOOD], "outputs": [
            {"name": "scores", "parameters": {"classification": 2}}]},
        "may hold: binary_data. Received: ['classification']",
    ),
    "no flag": (
        {"inputs": [GOOD], "parameters": {"binary_data_output": 1}},
        "'binary_data_output' must be true or false. Received: 1.",
    ),
    "parameters": (
        {"inputs": [GOOD], "parameters": []}, "'parameters' of the request",
    ),
    "an id": ({"inputs": [GOOD], "id": 42}, "'id' must be a string"),
    "a signature": (
        {"inputs": [GOOD], "parameters": {"signature_name": "x"}},
        'signature name: "\'x\'" not found in signature def. It has: serving_',
    ),
    "no signature": (
        {"inputs": [GOOD], "parameters": {"signature_name": None}},
        "'signature_name' key must be a string value",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(pets, case):
    content, words = REFUSED[case]
    answer = infer(pets, content)
    assert answer.status == 400
    assert words in answer.error


ONE = IMAGES[:1].tobytes()
ONE_SHAPE = (1, 8, 8, 3)


@pytest.mark.parametrize(
    ("size", "binary", "words"),
    [
        (192, ONE[:-1], "datatype UINT8 takes 192 bytes. Received: 191."),
        (191, ONE[:-1], "datatype UINT8 takes 192 bytes. Received: 191."),
        (192, ONE + b"x", "must add up to 193 bytes, which follow the JSON"),
        (193, ONE + b"x", "takes 192 bytes. Received: 193."),
        (-1, ONE, "'binary_data_size' must be an integer. Received: -1."),
        (192.0, ONE, "'binary_data_size' must be an integer"),
        (True, ONE, "'binary_data_size' must be an integer"),
        (2**70, ONE, "must add up to 192 bytes, which follow the JSON. Rec"),
    ],
)
def test_wrong_lengths(pets, size, binary, words):
    document = {"inputs": [pixels(shape=ONE_SHAPE, binary_data_size=size)]}
    answer = infer(pets, document, binary)
    assert answer.status in (200, 400)
    assert words in answer.error


@pytest.mark.parametrize(
    "length", [b"x", b"-1", b"1.5", b"", b"\xb2", b"9" * 99]
)
def test_wrong_headers(pets, length):
    document = {"inputs": [pixels(shape=ONE_SHAPE, binary_data_size=192)]}
    body, _ = with_binary(document, ONE)
    answer = pets.ask("POST", INFER, body, headers=[(LENGTH, length)])
    assert answer.status == 400
    assert "must be the length of the JSON, at most" in answer.error


def test_binary_without_the_header_is_no_json(pets):
    document = {"inputs": [pixels(shape=ONE_SHAPE, binary_data_size=192)]}
    body, _ = with_binary(document, ONE)
    assert "JSON Parse error" in pets.ask("POST", INFER, body).error


def test_limits_hold_here_too(tmp_path):
    served.export_small(tmp_path / "pets")
    pets = served.Served(tmp_path / "pets", max_images=2, max_megabytes=0.01)
    content = IMAGES.tobytes()
    sent = {"inputs": [pixels(binary_data_size=len(content))]}
    answer = infer(pets, sent, content)
    assert answer.status == 413
    assert "`images` takes at most 2 items in one request" in answer.error
    answer = infer(pets, sent, b" " * 20_000)
    assert answer.status == 413
    path = 'path="/v2/models/{name}/infer",status="413"'
    assert path in pets.get("/metrics").body.decode()
