"""The routes: TensorFlow Serving's REST protocol, and a page."""

import contextlib
import json
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from export.serve.access_log import AccessLog
from export.serve.limits import Limits, Refusal
from export.serve.metrics import Metrics
from export.serve.model.served import ServedModel
from export.serve.page_routes import add_page
from export.serve.workers import Workers

# HEAD is answered as GET is.
_READ = ("GET", "HEAD")


def create_app(model: ServedModel, limits: Limits) -> FastAPI:
    """Returns the ASGI application.

    Args:
        model: The model being served.
        limits: Of the requests.
    """
    metrics = Metrics(model)
    workers = Workers(limits, metrics)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        workers.close()

    # FastAPI's own pages load scripts from elsewhere.
    app = FastAPI(openapi_url=None, lifespan=lifespan, redirect_slashes=False)
    app.add_middleware(AccessLog, metrics=metrics)
    app.add_exception_handler(Refusal, _refuse)
    app.add_exception_handler(HTTPException, _refuse_path)
    # Routes are tried in this order.
    _add_predict(app, model, workers)
    _add_status(app, model, metrics)
    add_page(app, model, workers, limits)
    return app


def _add_status(app, model, metrics):
    @app.api_route("/healthz", methods=_READ)
    async def health():
        return _json({"status": "ok", "version": model.current.number})

    @app.api_route("/metrics", methods=_READ)
    async def prometheus():
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.api_route("/v1/models", methods=_READ)
    async def no_name():
        raise Refusal(400, "Missing model name in request.")

    @app.api_route("/v1/models/{name}", methods=_READ)
    @app.api_route("/v1/models/{name}/versions/{number}", methods=_READ)
    async def status(request: Request, name: str, number: str | None = None):
        return _json(_status(model, name, _number(request, name, number)))

    @app.api_route("/v1/models/{name}/metadata", methods=_READ)
    @app.api_route(
        "/v1/models/{name}/versions/{number}/metadata", methods=_READ
    )
    async def metadata(request: Request, name: str, number: str | None = None):
        version = model.version(name, _number(request, name, number))
        spec = {
            "name": name,
            "signature_name": "",
            "version": str(version.number),
        }
        definitions = {"signature_def": version.signature_defs}
        return _json(
            {"model_spec": spec, "metadata": {"signature_def": definitions}}
        )


def _add_predict(app, model, workers):
    @app.post("/v1/models/{name}:predict")
    @app.post("/v1/models/{name}/versions/{number}:predict")
    async def predict(request: Request, name: str, number: str | None = None):
        version = model.version(name, _number(request, name, number))
        answer = await workers.predict(request, version)
        return Response(answer, media_type="application/json")

    @app.post("/v1/models/{name}:classify")
    @app.post("/v1/models/{name}:regress")
    @app.post("/v1/models/{name}/versions/{number}:classify")
    @app.post("/v1/models/{name}/versions/{number}:regress")
    async def other(request: Request, name: str, number: str | None = None):
        model.version(name, _number(request, name, number))
        raise Refusal(
            400,
            "Expected a signature with the method name "
            "tensorflow/serving/classify or tensorflow/serving/regress. "
            "Received: tensorflow/serving/predict. Use :predict.",
        )


def _number(request: Request, name: str, text: str | None) -> int | None:
    if ":" in name:
        raise _malformed(request)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise _malformed(request)
    if len(text) > 18:
        raise Refusal(
            400, f"Failed to convert version: {text[:40]} to numeric."
        )
    return int(text)


def _status(model, name, number):
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


def _malformed(request):
    return Refusal(
        400, f"Malformed request: {request.method} {request.url.path}"
    )


async def _refuse(request: Request, refusal: Refusal) -> Response:
    return _json({"error": refusal.message}, refusal.status)


async def _refuse_path(request: Request, problem: HTTPException) -> Response:
    """Unknown paths and methods; within /v1 as TensorFlow Serving has it."""
    if request.url.path.startswith("/v1/"):
        return await _refuse(request, _malformed(request))
    return _json({"error": problem.detail}, problem.status_code)


def _json(content, status=200):
    # ASCII, so that any text a client sent can be quoted back.
    return Response(json.dumps(content), status, media_type="application/json")
