"""Small models to serve, and ways to ask them."""

import asyncio
import base64
import contextlib
import functools
import io
import json
import threading
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import uvicorn
from PIL import Image

from export.graph.servable import Servable
from export.serve.app import create_app
from export.serve.limits import Limits
from export.serve.model.served import ServedModel
from export.serve.uvicorn_connection import PatientConnection
from export.version.folders import write_version

SHAPE = (8, 8, 3)
CLASSES = ("cat", "dog", "café")


def export_small(
    folder, seed=0, shape=SHAPE, capsules=True, samples=True, decoder=False
):
    """Writes the next version of a small model and returns its folder."""
    rng = np.random.default_rng(seed)
    kernel = rng.normal(size=(np.prod(shape), 3 * 4)).astype(np.float32) / 8

    def infer(images):
        flat = tf.reshape(images, (-1, kernel.shape[0]))
        vectors = tf.reshape(tf.tanh(flat @ kernel), (-1, 3, 4))
        outputs = {"scores": tf.norm(vectors, axis=-1) / 2}
        return outputs | ({"capsules": vectors} if capsules else {})

    def reconstruct(capsules):
        longest = tf.argmax(tf.norm(capsules, axis=-1), axis=-1)
        vectors = tf.gather(capsules, longest, batch_dims=1)
        flat = tf.sigmoid(vectors @ (8 * kernel.T[:4]))
        return {"images": tf.reshape(flat, (-1, *shape))}

    def write(path):
        draw = reconstruct if decoder else None
        Servable(infer, shape, CLASSES, draw).save(str(path))
        (path / "labels.txt").write_text("\n".join(CLASSES) + "\n")
        if samples:
            _write_samples(path / "assets.extra" / "samples")

    return write_version(folder, write)


def _write_samples(folder):
    folder.mkdir(parents=True)
    for place, image in enumerate(images(len(CLASSES), seed=1)):
        (folder / f"{place}_{CLASSES[place]}.png").write_bytes(png(image))


def images(count, seed=0, shape=SHAPE):
    return np.random.default_rng(seed).integers(
        0, 256, (count, *shape), np.uint8
    )


def png(image, kind="PNG", **options):
    file = io.BytesIO()
    if not isinstance(image, Image.Image):
        image = Image.fromarray(image)
    image.save(file, kind, **options)
    return file.getvalue()


def pixels(file):
    """The pixels of an encoded image, RGB."""
    with Image.open(io.BytesIO(file)) as image:
        return np.asarray(image.convert("RGB"))


def b64(content):
    return {"b64": base64.b64encode(content).decode()}


def offline(version, signature="serving_default", **inputs):
    """What the SavedModel itself says."""
    loaded = tf.saved_model.load(str(version))
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    outputs = loaded.signatures[signature](**tensors)
    return {name: value.numpy() for name, value in outputs.items()}


def assert_answers(predictions, outputs):
    """Rows of an answer equal the SavedModel's own outputs."""
    assert len(predictions) == len(outputs["scores"])
    for place, row in enumerate(predictions):
        assert row.keys() == outputs.keys()
        assert row["class_ids"] == outputs["class_ids"][place]
        assert row["class_names"] == outputs["class_names"][place].decode()
        for name in outputs.keys() & {"scores", "capsules"}:
            np.testing.assert_allclose(
                row[name], outputs[name][place], rtol=0, atol=1e-5
            )


def tensor(name, datatype, shape, data=None, **parameters):
    """As the Open Inference Protocol describes one."""
    described = {"name": name, "datatype": datatype, "shape": list(shape)}
    if data is not None:
        described["data"] = data
    return described | ({"parameters": parameters} if parameters else {})


def with_binary(document, *binary):
    """Body and headers of a request with tensors in binary."""
    text = to_json(document)
    length = str(len(text)).encode()
    headers = [(b"inference-header-content-length", length)]
    return b"".join([text, *binary]), headers


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The message of an error body, which has nothing else."""
        (message,) = self.json.values()
        assert list(self.json) == ["error"]
        return message


class Served:
    """A model behind its application, asked without a network."""

    def __init__(self, folder, labels=None, origins=(), **limits):
        self.folder = folder
        limits = Limits(**{"batch_timeout_ms": 0} | limits)
        self.model = ServedModel(folder, folder.name, limits, labels)
        self.app = create_app(self.model, limits, origins)

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def predict(self, content, path="/v1/models/{}:predict"):
        return self.ask("POST", path.format(self.model.name), content)

    def ask(self, method, path, content=b"", **options):
        return asyncio.run(self.request(method, path, content, **options))

    async def request(
        self, method, path, content=b"", *, headers=(), query=b"", receive=None
    ):
        """One request; `receive` takes the place of a body that just comes."""
        body = content if isinstance(content, bytes) else to_json(content)
        messages = [{"type": "http.request", "body": body}]
        sent = []

        async def receive_body():
            if messages:
                return messages.pop()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http", "method": method, "path": path,
            "raw_path": path.encode("utf-8", "surrogatepass"),
            "query_string": query, "headers": list(headers), "root_path": "",
            "scheme": "http", "http_version": "1.1",
            "client": ("127.0.0.1", 1), "server": ("localhost", 80),
        }  # fmt: skip
        await self.app(scope, receive or receive_body, send)
        if not sent:
            return None
        start, *rest = sent
        return Answer(
            start["status"],
            {k.decode(): v.decode() for k, v in start["headers"]},
            b"".join(message.get("body", b"") for message in rest),
        )


def to_json(content):
    return json.dumps(content).encode()


@contextlib.contextmanager
def listening(app, patience=30):
    """Runs an application on a free port, in a thread."""
    config = uvicorn.Config(
        app,
        port=0,
        http=functools.partial(PatientConnection, patience=patience),
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            threading.Event().wait(0.01)
        server.port = server.servers[0].sockets[0].getsockname()[1]
        server.thread = thread
        yield server
    finally:
        server.should_exit = True
        thread.join()
