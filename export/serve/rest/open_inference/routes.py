"""The routes of KServe's Open Inference Protocol v2."""

import functools

from fastapi import FastAPI, Request, Response

from encapnet_tf.version import __version__
from export.choices import DEFAULT
from export.serve.limits import Refusal
from export.serve.model.loaded_version import LoadedVersion
from export.serve.model.served import ServedModel
from export.serve.rest.answers import JSON_LENGTH, READ, json_response
from export.serve.rest.documents import chosen
from export.serve.rest.open_inference.datatypes import described
from export.serve.rest.open_inference.request import SIGNATURE, read_inference
from export.serve.rest.tensors import short
from export.serve.workers import Workers

_MODEL = "/v2/models/{name}"
_MODELS = (_MODEL, _MODEL + "/versions/{version}")
_ABOUT = {
    "name": "encapnet_tf",
    "version": __version__,
    "extensions": ["binary_tensor_data", "parameters"],
}


def add_open_inference(
    app: FastAPI, model: ServedModel, workers: Workers
) -> None:
    """Adds the protocol to an application.

    Args:
        app: The application.
        model: The model being served.
        workers: They answer requests for inference.
    """
    _add_server(app)

    async def model_metadata(request: Request) -> Response:
        return json_response(_metadata(request, model))

    async def model_ready(request: Request) -> Response:
        _version(request, model)
        return json_response({"name": model.name, "ready": True})

    async def infer(request: Request) -> Response:
        version = _version(request, model)
        head = {"model_name": model.name, "model_version": str(version.number)}
        length = request.headers.get(JSON_LENGTH)
        read = functools.partial(read_inference, json_length=length, head=head)
        return await workers.answer(request, version, read)

    for path in _MODELS:
        app.add_api_route(path, model_metadata, methods=READ)
        app.add_api_route(f"{path}/ready", model_ready, methods=READ)
        app.add_api_route(f"{path}/infer", infer, methods=["POST"])


def _add_server(app):
    @app.api_route("/v2", methods=READ)
    @app.api_route("/v2/", methods=READ)
    async def server_metadata():
        return json_response(_ABOUT)

    @app.api_route("/v2/health/live", methods=READ)
    async def server_live():
        return json_response({"live": True})

    # The port is taken up once a version is loaded, and one stays.
    @app.api_route("/v2/health/ready", methods=READ)
    async def server_ready():
        return json_response({"ready": True})


def _metadata(request, model):
    version = _version(request, model)
    name = request.query_params.get(SIGNATURE, DEFAULT)
    signature = chosen(name, version.signatures)
    return {
        "name": model.name,
        "versions": [str(number) for number in sorted(model.loaded)],
        "platform": "tensorflow_savedmodel",
        "inputs": described(signature.inputs),
        "outputs": described(signature.outputs),
    }


def _version(request, model) -> LoadedVersion:
    """The version in the path, which may be a number or a label."""
    name = request.path_params["name"]
    asked = request.path_params.get("version")
    version = model.find(name, asked)
    if version is None:
        which = "" if asked is None else f" version {short(asked)}"
        there = ", ".join([*map(str, sorted(model.loaded)), *model.labels])
        raise Refusal(
            404,
            f"Model {short(name)}{which} is not served. "
            f"There is: {model.name}, versions {there}.",
        )
    return version
