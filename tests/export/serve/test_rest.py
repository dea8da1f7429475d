"""The REST protocol, request by request of TensorFlow Serving's documents."""

import json

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from export.version.from_run import export_run
from tests.export.serve import served


def half_plus_three(folder):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def serving_default(x):
        return {"y": x / 2 + module.three}

    module.three = tf.Variable(3.0)
    module.serving_default = serving_default
    tf.saved_model.save(
        module, folder / "123", signatures={"serving_default": serving_default}
    )


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "half_plus_three"
    half_plus_three(folder)
    return served.Served(folder)


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return served.Served(folder)


AVAILABLE = {
    "state": "AVAILABLE",
    "status": {"error_code": "OK", "error_message": ""},
}


@pytest.mark.parametrize("path", ["", "/versions/123"])
def test_status(half, path):
    answer = half.get(f"/v1/models/half_plus_three{path}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {
        "model_version_status": [{"version": "123"} | AVAILABLE]
    }


@pytest.mark.parametrize("path", ["", "/versions/123"])
def test_predict_rows(half, path):
    answer = half.predict(
        {"instances": [1.0, 2.0, 5.0]},
        f"/v1/models/half_plus_three{path}:predict",
    )
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {"predictions": [3.5, 4.0, 5.5]}


def test_predict_columns_with_the_signature_s_name(half):
    answer = half.predict(
        {"signature_name": "serving_default", "inputs": [3.0, 4.0]}
    )
    assert answer.json == {"outputs": [4.5, 5.0]}


def test_predict_nested_lists(half):
    answer = half.predict({"instances": [[1.0, 2.0], [3.0, 4.0]]})
    assert answer.json == {"predictions": [[3.5, 4.0], [4.5, 5.0]]}


@pytest.mark.parametrize("path", ["", "/versions/123"])
def test_metadata(half, path):
    answer = half.get(f"/v1/models/half_plus_three{path}/metadata")
    assert answer.status == 200
    assert answer.json["model_spec"] == {
        "name": "half_plus_three",
        "signature_name": "",
        "version": "123",
    }
    definitions = answer.json["metadata"]["signature_def"]["signature_def"]
    definition = definitions["serving_default"]
    assert definition["method_name"] == "tensorflow/serving/predict"
    assert definition["inputs"]["x"] == {
        "dtype": "DT_FLOAT",
        "tensor_shape": {"dim": [], "unknown_rank": True},
        "name": "serving_default_x:0",
    }


def test_metadata_of_shapes(pets):
    metadata = pets.get("/v1/models/pets/metadata").json["metadata"]
    definition = metadata["signature_def"]["signature_def"]["serving_default"]
    shape = definition["inputs"]["images"]["tensor_shape"]
    assert definition["inputs"]["images"]["dtype"] == "DT_UINT8"
    assert [dim["size"] for dim in shape["dim"]] == ["-1", "8", "8", "3"]
    assert not shape["unknown_rank"]


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("POST", "/v1/models/half:predict", 404,
         "Servable not found for request: Latest(half)"),
        ("POST", "/v1/models/half_plus_three/versions/99:predict", 404,
         "Servable not found for request: Specific(half_plus_three, 99)"),
        ("GET", "/v1/models/half", 404,
         "Could not find any versions of model half"),
        ("GET", "/v1/models/half_plus_three/versions/99", 404,
         "Could not find version 99 of model half_plus_three"),
        ("GET", "/v1/models/half/metadata", 404, "Servable not found"),
        ("GET", "/v1/models", 400, "Missing model name in request."),
        ("POST", "/v1/models", 400, "Malformed request: POST /v1/models"),
        ("GET", "/v1/foo", 400, "Malformed request: GET /v1/foo"),
        ("POST", "/v1/foo", 400, "Malformed request: POST /v1/foo"),
        ("GET", "/v1/models/foo:predict", 400, "Malformed request: GET"),
        ("GET", "/v1/models/foo/version/50:predict", 400, "Malformed"),
        ("PUT", "/v1/models/half_plus_three:predict", 400, "Malformed"),
        ("POST", "/v1/models/foo/versions/HELLO:predict", 400,
         "Malformed request: POST /v1/models/foo/versions/HELLO:predict"),
        ("POST", f"/v1/models/foo/versions/{2**64 - 1}:predict", 400,
         f"Failed to convert version: {2**64 - 1} to numeric."),
        ("POST", "/v1/models/half_plus_three:classify", 400, "Use :predict"),
        ("POST", "/v1/models/half_plus_three:regress", 400, "Use :predict"),
        ("GET", "/nothing", 404, "Not Found"),
        ("DELETE", "/healthz", 405, "Method Not Allowed"),
    ],
)  # fmt: skip
def test_errors_of_paths(half, method, path, status, words):
    answer = half.ask(method, path, {"instances": [1]})
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert words in answer.error


def test_errors_of_bodies(half):
    answer = half.predict({"instances": ["x"]})
    assert answer.status == 400
    assert answer.error.startswith("`x` takes finite numbers")


def test_an_error_quotes_any_text_a_client_can_send(half):
    answer = half.predict(b'{"signature_name": "\\ud800"}')
    assert answer.status == 400
    assert "not found in signature def" in answer.error


IMAGES = served.images(5)
FILES = [served.png(image) for image in IMAGES]


def test_every_signature_answers_as_the_saved_model_does(pets):
    expected = served.offline(pets.folder / "1", images=IMAGES)
    rows = [
        {"instances": IMAGES.tolist()},
        {"instances": [{"images": image.tolist()} for image in IMAGES]},
        {
            "signature_name": "serving_float",
            "instances": (IMAGES.astype(np.float32) / 255).tolist(),
        },
        {
            "signature_name": "serving_bytes",
            "instances": [served.b64(file) for file in FILES],
        },
        {
            "signature_name": "serving_bytes",
            "instances": [{"image_bytes": served.b64(f)} for f in FILES],
        },
    ]
    for content in rows:
        answer = pets.predict(content)
        assert answer.status == 200, answer
        served.assert_answers(answer.json["predictions"], expected)


def test_columns_hold_the_same_answers(pets):
    rows = pets.predict({"instances": IMAGES.tolist()}).json["predictions"]
    columns = pets.predict({"inputs": IMAGES.tolist()}).json["outputs"]
    assert rows == [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def converted(mode, **options):
    large = served.images(1, shape=(21, 13, 3))[0]
    return served.png(Image.fromarray(large).convert(mode), **options)


ODD_FILES = {
    "other size": served.png(served.images(1, shape=(21, 13, 3))[0]),
    "smaller": served.png(served.images(1, shape=(3, 5, 3))[0]),
    "jpeg": served.png(IMAGES[0], "JPEG"),
    "grey": served.png(Image.fromarray(IMAGES[0]).convert("L")),
    "grey with alpha": converted("LA"),
    "transparent": served.png(served.images(1, shape=(8, 8, 4))[0]),
    "palette": served.png(Image.fromarray(IMAGES[0]).convert("P")),
    "one bit": converted("1"),
    "16 bits": served.png(
        Image.fromarray(IMAGES[0, :, :, 0].astype(np.uint16) * 257)
    ),
    "one colour transparent": served.png(
        IMAGES[0], transparency=tuple(map(int, IMAGES[0, 0, 0]))
    ),
}


@pytest.mark.parametrize("kind", ODD_FILES)
def test_files_are_decoded_as_the_saved_model_decodes_them(pets, kind):
    file = ODD_FILES[kind]
    expected = served.offline(
        pets.folder / "1", "serving_bytes", image_bytes=[file]
    )
    answer = pets.predict(
        {"signature_name": "serving_bytes", "instances": [served.b64(file)]}
    )
    served.assert_answers(answer.json["predictions"], expected)


def test_one_channel(tmp_path):
    version = served.export_small(
        tmp_path / "grey", shape=(8, 8, 1), capsules=False
    )
    grey = served.Served(tmp_path / "grey")
    for image in (IMAGES[0], IMAGES[0, :, :, 0]):
        file = served.png(image)
        expected = served.offline(version, "serving_bytes", image_bytes=[file])
        answer = grey.predict(
            {
                "signature_name": "serving_bytes",
                "instances": [served.b64(file)],
            }
        )
        assert "capsules" not in expected
        served.assert_answers(answer.json["predictions"], expected)


def test_more_images_than_a_batch_holds(tmp_path):
    version = served.export_small(tmp_path / "pets")
    pets = served.Served(tmp_path / "pets", max_batch=2)
    expected = served.offline(version, images=IMAGES)
    answer = pets.predict({"instances": IMAGES.tolist()})
    served.assert_answers(answer.json["predictions"], expected)


def test_what_the_exporter_writes_is_served(tmp_path, trained):
    out = tmp_path / "stripes"
    export_run(str(trained.path), str(out), formats=("saved_model",))
    stripes = served.Served(out)
    about = stripes.get("/page.json").json
    assert about["image_shape"] == [32, 32, 3]
    assert len(about["samples"]) == len(about["classes"]) == 3
    files = [stripes.get(f"/samples/{name}").body for name in about["samples"]]
    expected = served.offline(out / "1", "serving_bytes", image_bytes=files)
    answer = stripes.predict(
        {
            "signature_name": "serving_bytes",
            "instances": [served.b64(file) for file in files],
        }
    )
    served.assert_answers(answer.json["predictions"], expected)


@pytest.mark.parametrize(
    "path",
    ["/", "/page.js", "/page.json", "/samples/0_cat.png", "/healthz",
     "/metrics", "/v1/models/pets", "/v1/models/pets/versions/1",
     "/v1/models/pets/metadata", "/v1/models/pets/versions/1/metadata"],
)  # fmt: skip
def test_head_tells_what_get_tells(pets, path):
    head, get = pets.ask("HEAD", path), pets.get(path)
    assert head.status == get.status == 200
    assert head.headers["content-type"] == get.headers["content-type"]
    if path != "/metrics":
        assert head.headers["content-length"] == str(len(get.body))


def test_head_of_what_is_not_there(pets):
    assert pets.ask("HEAD", "/nothing").status == 404
    assert pets.ask("HEAD", "/v1/models/dogs").status == 404
    assert pets.ask("HEAD", "/v1/models/pets:predict").status == 400


def test_health(pets):
    answer = pets.get("/healthz")
    assert (answer.status, answer.json) == (200, {"status": "ok", "version": 1})


def test_metrics(tmp_path):
    served.export_small(tmp_path / "pets")
    pets = served.Served(tmp_path / "pets")
    pets.predict({"instances": IMAGES.tolist()})
    pets.predict(b"")
    pets.get("/elsewhere")
    answer = pets.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.body.decode().splitlines()
    path = 'path="/v1/models/{name}:predict"'
    for line in (
        f'encapnet_requests_total{{{path},status="200"}} 1.0',
        f'encapnet_requests_total{{{path},status="400"}} 1.0',
        'encapnet_requests_total{path="other",status="404"} 1.0',
        f"encapnet_request_seconds_count{{{path}}} 2.0",
        'encapnet_batch_images_bucket{le="4.0"} 0.0',
        'encapnet_batch_images_bucket{le="8.0"} 1.0',
        "encapnet_queue 0.0",
        "encapnet_model_version 1.0",
    ):
        assert line in lines


def test_every_request_is_a_json_line_of_the_log(pets, caplog):
    from export.serve.access_log import JsonLines

    with caplog.at_level("INFO", "export.serve"):
        pets.get("/v1/models/pets\n")
    (record,) = caplog.records
    line = JsonLines().format(record)
    assert "\n" not in line
    fields = json.loads(line)
    assert fields["ms"] >= 0
    assert (
        fields.items()
        >= {
            "level": "info",
            "event": "request",
            "client": "127.0.0.1",
            "method": "GET",
            "path": "/v1/models/pets\n",
            "status": 404,
        }.items()
    )
