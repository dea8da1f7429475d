"""The routes of TensorFlow Serving's REST protocol."""

from fastapi import FastAPI, Request, Response

from export.serve.limits import Refusal
from export.serve.model.loaded_version import LoadedVersion
from export.serve.model.served import ServedModel
from export.serve.rest.answers import READ, json_response
from export.serve.workers import Workers

_MODEL = "/v1/models/{name}"
_MODELS = (_MODEL, _MODEL + "/versions/{number}", _MODEL + "/labels/{label}")


def add_tf_serving(app: FastAPI, model: ServedModel, workers: Workers) -> None:
    """Adds the protocol to an application.

    Args:
        app: The application.
        model: The model being served.
        workers: They answer requests for predictions.
    """

    async def predict(request: Request) -> Response:
        return await workers.predict(request, _version(request, model))

    async def other(request: Request) -> Response:
        _version(request, model)
        raise Refusal(
            400,
            "Expected a signature with the method name "
            "tensorflow/serving/classify or tensorflow/serving/regress. "
            "Received: tensorflow/serving/predict. Use :predict.",
        )

    for path in _MODELS:
        app.add_api_route(f"{path}:predict", predict, methods=["POST"])
        app.add_api_route(f"{path}:classify", other, methods=["POST"])
        app.add_api_route(f"{path}:regress", other, methods=["POST"])
    _add_status(app, model)


def malformed(request: Request) -> Refusal:
    """Says that a path means nothing in this protocol."""
    return Refusal(
        400, f"Malformed request: {request.method} {request.url.path}"
    )


def _add_status(app, model):
    @app.api_route("/v1/models", methods=READ)
    async def no_name() -> Response:
        raise Refusal(400, "Missing model name in request.")

    async def status(request: Request) -> Response:
        return json_response(_status(request, model))

    async def metadata(request: Request) -> Response:
        return json_response(_metadata(request, model))

    for path in _MODELS:
        app.add_api_route(path, status, methods=READ)
        app.add_api_route(f"{path}/metadata", metadata, methods=READ)


def _metadata(request, model):
    version = _version(request, model)
    return {
        "model_spec": {
            "name": model.name,
            "signature_name": "",
            "version": str(version.number),
        },
        "metadata": {
            "signature_def": {"signature_def": version.signature_defs}
        },
    }


def _status(request, model):
    name, number = _asked(request, model)
    statuses = model.statuses() if name == model.name else {}
    if number is not None:
        statuses = {n: s for n, s in statuses.items() if n == number}
    if not statuses:
        asked = "any versions" if number is None else f"version {number}"
        raise Refusal(404, f"Could not find {asked} of model {name}")
    return {
        "model_version_status": [
            {
                "version": str(each),
                "state": state,
                "status": {
                    "error_code": "UNKNOWN" if message else "OK",
                    "error_message": message,
                },
            }
            for each, (state, message) in sorted(statuses.items(), reverse=True)
        ]
    }


def _version(request, model) -> LoadedVersion:
    name, number = _asked(request, model)
    version = model.find(name, None if number is None else str(number))
    if version is None:
        asked = f"Latest({name})"
        if number is not None:
            asked = f"Specific({name}, {number})"
        raise Refusal(404, f"Servable not found for request: {asked}")
    return version


def _asked(request, model) -> tuple[str, int | None]:
    """The model and version of a path."""
    path = request.path_params
    name, label = path["name"], path.get("label")
    if ":" in name + (label or ""):
        raise malformed(request)
    if label is not None:
        return name, _labelled(name, label, model)
    return name, _number(request, path.get("number"))


def _labelled(name, label, model):
    if name != model.name or label not in model.labels:
        raise Refusal(400, f"Unrecognized servable version label: {label}")
    return model.labels[label]


def _number(request, text):
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise malformed(request)
    if len(text) > 18:
        raise Refusal(
            400, f"Failed to convert version: {text[:40]} to numeric."
        )
    return int(text)
