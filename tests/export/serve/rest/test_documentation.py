"""Requests as TensorFlow Serving's page on its REST API shows them."""

import numpy as np
import pytest
import tensorflow as tf

from tests.export.serve import served

SIGNAL = np.array([[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]])
SENSOR = np.array([[[1, 2], [3, 4]], [[4, 5], [6, 8]]], np.float32)


def spec(shape, dtype, name):
    return tf.TensorSpec(shape, dtype, name)


def save(folder):
    """The page's model of three named inputs, and one of strings."""
    module = tf.Module()

    @tf.function(
        input_signature=[
            spec((None,), tf.string, "tag"),
            spec((None, 5), tf.int64, "signal"),
            spec((None, 2, 2), tf.float32, "sensor"),
        ]
    )
    def three(tag, signal, sensor):
        total = tf.cast(tf.reduce_sum(signal, 1), tf.float32)
        return {
            "loud": tf.strings.upper(tag),
            "sum": total + tf.reduce_sum(sensor, (1, 2)),
        }

    @tf.function(input_signature=[spec((None,), tf.string, "image_bytes")])
    def classify_objects(image_bytes):
        return {
            "length": tf.strings.length(image_bytes),
            "echo_bytes": image_bytes,
        }

    signatures = {
        "serving_default": three,
        "classify_objects": classify_objects,
    }
    module.three, module.classify_objects = three, classify_objects
    tf.saved_model.save(module, folder / "1", signatures=signatures)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "three"
    save(folder)
    return served.Served(folder, {"stable": 1})


PATHS = [f"/v1/models/three{x}:predict" for x in
         ("", "/versions/1", "/labels/stable")]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_three_named_tensors_in_rows(server, path):
    content = b"""
    {
     "instances": [
       {
         "tag": "foo",
         "signal": [1, 2, 3, 4, 5],
         "sensor": [[1, 2], [3, 4]]
       },
       {
         "tag": "bar",
         "signal": [3, 4, 1, 2, 5],
         "sensor": [[4, 5], [6, 8]]
       }
     ]
    }"""
    answer = server.predict(content, path)
    assert answer.json == {
        "predictions": [
            {"loud": "FOO", "sum": 25.0},
            {"loud": "BAR", "sum": 38.0},
        ]
    }


@pytest.mark.parametrize("path", PATHS)
def test_three_named_tensors_in_columns(server, path):
    content = b"""
    {
     "inputs": {
       "tag": ["foo", "bar"],
       "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
       "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]]
     }
    }"""
    answer = server.predict(content, path)
    assert answer.json == {
        "outputs": {"loud": ["FOO", "BAR"], "sum": [25.0, 38.0]}
    }


def test_binary_values_go_in_and_out_as_base64(server):
    content = b"""
    {
      "signature_name": "classify_objects",
      "instances": [
        { "image_bytes": { "b64": "aW1hZ2UgYnl0ZXM=" } },
        { "image_bytes": { "b64": "YXdlc29tZSBpbWFnZSBieXRlcw==" } }
      ]
    }"""
    assert server.predict(content).json == {
        "predictions": [
            {"echo_bytes": {"b64": "aW1hZ2UgYnl0ZXM="}, "length": 11},
            {
                "echo_bytes": {"b64": "YXdlc29tZSBpbWFnZSBieXRlcw=="},
                "length": 19,
            },
        ]
    }


@pytest.mark.parametrize("which", ["", "/versions/1", "/labels/stable"])
def test_status_and_metadata(server, which):
    (row,) = server.get(f"/v1/models/three{which}").json["model_version_status"]
    assert (row["version"], row["state"]) == ("1", "AVAILABLE")
    assert row["status"] == {"error_code": "OK", "error_message": ""}
    metadata = server.get(f"/v1/models/three{which}/metadata").json["metadata"]
    signatures = metadata["signature_def"]["signature_def"]
    inputs = signatures["serving_default"]["inputs"]
    assert inputs["signal"]["dtype"] == "DT_INT64"
    assert signatures["classify_objects"]["inputs"].keys() == {"image_bytes"}


@pytest.mark.parametrize(
    ("path", "content", "status", "words"),
    [
        ("/v1/models/half:predict", {"instances": [1.0, 5.0]}, 404,
         "Servable not found for request: Latest(half)"),
        (PATHS[0], {"instances": [1.0, 5.0]}, 400, "objects with the keys: "),
        (PATHS[0], {"instances": [1], "inputs": [1]}, 400, "exactly one of"),
        (PATHS[0], {"signature_name": "x", "instances": [1]}, 400,
         "not found in signature def"),
        ("/v1/models/three:regress", {"examples": [{"x": 1.0}]}, 400,
         "Use :predict"),
        ("/v1/models/three/predict", {"instances": [1]}, 400,
         "Malformed request: POST /v1/models/three/predict"),
    ],
)  # fmt: skip
def test_errors(server, path, content, status, words):
    answer = server.ask("POST", path, content)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert words in answer.error


def test_metrics_where_tensorflow_serving_has_them(server):
    answer = server.get("/monitoring/prometheus/metrics")
    assert answer.headers == server.get("/metrics").headers | {
        "content-length": str(len(answer.body))
    }
    assert b"encapnet_model_version 1.0" in answer.body


def test_the_same_through_the_open_inference_protocol(server):
    """Several inputs, some in binary and some in JSON."""
    signal, sensor = SIGNAL.tobytes(), SENSOR.tobytes()
    inputs = [
        served.tensor("signal", "INT64", [2, 5], binary_data_size=80),
        served.tensor("tag", "BYTES", [2], ["foo", "bar"]),
        served.tensor("sensor", "FP32", [2, 2, 2], binary_data_size=32),
    ]
    body, headers = served.with_binary({"inputs": inputs}, signal, sensor)
    answer = server.ask("POST", "/v2/models/three/infer", body, headers=headers)
    loud, total = answer.json["outputs"]
    assert loud == served.tensor("loud", "BYTES", [2], ["FOO", "BAR"])
    assert total == served.tensor("sum", "FP32", [2], [25.0, 38.0])
