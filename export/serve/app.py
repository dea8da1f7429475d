"""The routes: TensorFlow Serving's REST protocol, and a page."""

import asyncio
import contextlib
import importlib.resources
import json
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from export.serve.access_log import AccessLog
from export.serve.limits import Limits, Refusal
from export.serve.metrics import Metrics
from export.serve.model.served import ServedModel
from export.serve.workers import Workers

_PAGE = {
    "/": ("index.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
# The page loads from nowhere but this server.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


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
    _add_predict(app, model, workers, limits)
    _add_status(app, model, metrics)
    _add_page(app, model, limits)
    return app


def _add_status(app, model, metrics):
    @app.get("/healthz")
    async def health():
        return _json({"status": "ok", "version": model.current.number})

    @app.get("/metrics")
    async def prometheus():
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/v1/models")
    async def no_name():
        raise Refusal(400, "Missing model name in request.")

    @app.get("/v1/models/{name}")
    @app.get("/v1/models/{name}/versions/{number}")
    async def status(request: Request, name: str, number: str | None = None):
        return _json(_status(model, name, _number(request, name, number)))

    @app.get("/v1/models/{name}/metadata")
    @app.get("/v1/models/{name}/versions/{number}/metadata")
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


def _add_predict(app, model, workers, limits):
    @app.post("/v1/models/{name}:predict")
    @app.post("/v1/models/{name}/versions/{number}:predict")
    async def predict(request: Request, name: str, number: str | None = None):
        version = model.version(name, _number(request, name, number))
        workers.take_place()
        try:
            body = await _read_body(request, limits)
        except BaseException:
            workers.leave_place()
            raise
        answer = await workers.predict(version, body)
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


def _add_page(app, model, limits):
    files = importlib.resources.files("export.serve") / "page"
    for path, (file, media_type) in _PAGE.items():
        content = (files / file).read_bytes()
        app.add_api_route(path, _page_file(content, media_type))

    @app.get("/page.json")
    async def about():
        version = model.current
        return _json(
            {
                "name": model.name,
                "version": version.number,
                "classes": version.labels,
                "image_shape": version.image_shape,
                "samples": list(version.samples),
                "max_megabytes": limits.max_megabytes,
            }
        )

    @app.get("/samples/{file}")
    async def sample(file: str):
        content = model.current.samples.get(file)
        if content is None:
            raise Refusal(404, "There is no such sample.")
        return Response(content, media_type="image/png", headers=_PAGE_HEADERS)


def _page_file(content, media_type):
    async def serve():
        return Response(content, media_type=media_type, headers=_PAGE_HEADERS)

    return serve


async def _read_body(request: Request, limits: Limits) -> bytes:
    """Reads a body that is neither too long nor too slow."""
    most = int(limits.max_megabytes * 1e6)
    too_long = Refusal(
        413,
        f"A body may have {limits.max_megabytes:g} MB. Received: more. "
        "Send fewer or smaller images.",
    )
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(limits.timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_long
    except TimeoutError:
        raise Refusal(
            408,
            f"The body must arrive within {limits.timeout_s:g} seconds. "
            f"Received: {len(body)} bytes of it.",
        ) from None
    return bytes(body)


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
