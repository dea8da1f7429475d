"""NVIDIA's client of the Open Inference Protocol, over a socket."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tritonclient import http as triton
from tritonclient.utils import InferenceServerException

from tests.export.serve import served

IMAGES = served.images(4)
FILES = np.array([served.png(image) for image in IMAGES], object)
BYTES = {"signature_name": "serving_bytes"}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    pets = served.Served(folder, max_batch=2, batch_timeout_ms=1000)
    with served.listening(pets.app) as server:
        yield f"127.0.0.1:{server.port}"


@pytest.fixture
def client(address):
    with triton.InferenceServerClient(address) as client:
        yield client


@pytest.fixture(scope="module")
def expected(address):
    """What TF Serving's route says of the images."""
    return predicted(address, IMAGES)


def predicted(address, images):
    body = json.dumps({"inputs": images.tolist()}).encode()
    request = urllib.request.Request(
        f"http://{address}/v1/models/pets:predict", body
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["outputs"]


def tensor(name, array, datatype, binary=True):
    sent = triton.InferInput(name, list(array.shape), datatype)
    return sent.set_data_from_numpy(array, binary_data=binary)


def pixels(binary=True):
    return [tensor("images", IMAGES, "UINT8", binary)]


def assert_equal(result, expected):
    for name, values in expected.items():
        found = result.as_numpy(name)
        if found.dtype == object:
            texts = [x if isinstance(x, str) else x.decode() for x in found]
            assert texts == values
        else:
            right = np.array(values, found.dtype)
            np.testing.assert_array_equal(found, right)


def test_health_and_metadata(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("pets")
    assert client.is_model_ready("pets", "1")
    assert not client.is_model_ready("pets", "2")
    assert not client.is_model_ready("dogs")
    about = client.get_server_metadata()
    assert "binary_tensor_data" in about["extensions"]
    metadata = client.get_model_metadata("pets")
    (images,) = metadata["inputs"]
    assert (images["datatype"], images["shape"]) == ("UINT8", [-1, 8, 8, 3])
    metadata = client.get_model_metadata("pets", query_params=BYTES)
    assert metadata["inputs"][0]["datatype"] == "BYTES"


@pytest.mark.parametrize("sends_binary", [False, True])
@pytest.mark.parametrize("gets_binary", [False, True, None])
@pytest.mark.parametrize("zipped", [None, "gzip", "deflate"])
def test_infer(client, expected, sends_binary, gets_binary, zipped):
    outputs = gets_binary is not None and [
        triton.InferRequestedOutput(name, binary_data=gets_binary)
        for name in expected
    ]
    result = client.infer(
        "pets",
        pixels(sends_binary),
        model_version="1",
        outputs=outputs or None,
        request_id="seven",
        request_compression_algorithm=zipped,
        response_compression_algorithm=zipped,
    )
    head = result.get_response()
    assert head["id"] == "seven"
    assert (head["model_name"], head["model_version"]) == ("pets", "1")
    assert_equal(result, expected)


def test_files_as_bytes(client, expected):
    files = tensor("image_bytes", FILES, "BYTES")
    assert_equal(client.infer("pets", [files], parameters=BYTES), expected)


def test_what_the_client_always_may_send_is_taken(client, expected):
    result = client.infer(
        "pets", pixels(), sequence_id=7, sequence_start=True, priority=2,
        timeout=1000,
    )  # fmt: skip
    assert_equal(result, expected)


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"model_name": "dogs"}, "404", "'dogs' is not served. There is: pets"),
        ({"model_version": "7"}, "404", "version '7' is not served"),
        ({"parameters": {"signature_name": "x"}}, "400", "not found in sig"),
        ({"inputs": [tensor("x", IMAGES, "UINT8")]}, "400", "inputs: images"),
        ({"inputs": [tensor("images", IMAGES / 255, "FP64")]}, "400",
         "`images` must have the datatype UINT8. Received: 'FP64'."),
        ({"inputs": [tensor("images", IMAGES[0], "UINT8")]}, "400",
         "must have the shape [any, 8, 8, 3]. Received: [8, 8, 3]."),
        ({"outputs": [triton.InferRequestedOutput("x")]}, "400",
         "'outputs' may name: capsules, class_ids"),
        ({"outputs": [triton.InferRequestedOutput("scores", class_count=2)]},
         "400", "may hold: binary_data"),
    ],
)  # fmt: skip
def test_errors(client, change, status, words):
    asked = {"model_name": "pets", "inputs": pixels()} | change
    with pytest.raises(InferenceServerException) as caught:
        client.infer(**asked)
    assert caught.value.status() == status
    assert words in caught.value.message()


def test_both_protocols_are_computed_in_one_batch(address):
    """Which waits for a second image, whoever sends it."""
    images = served.images(2, seed=5)
    together = predicted(address, images)["scores"]
    before = computed_alone(address)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(predicted, address, images[:1])
        with triton.InferenceServerClient(address) as client:
            sent = [tensor("images", images[1:], "UINT8")]
            second = client.infer("pets", sent).as_numpy("scores")
    assert computed_alone(address) == before
    found = [first.result()["scores"][0], second[0]]
    np.testing.assert_allclose(found, together, rtol=0, atol=1e-5)


def computed_alone(address):
    """How many images were."""
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (count,) = (n for n in lines if 'batch_images_bucket{le="1.0"}' in n)
    return float(count.split()[1])
