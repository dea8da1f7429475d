"""The application: two protocols, a page, health and metrics."""

import contextlib
from collections.abc import AsyncIterator, Sequence

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from export.serve.access_log import AccessLog
from export.serve.limits import Limits, Refusal
from export.serve.metrics import Metrics
from export.serve.model.served import ServedModel
from export.serve.openapi.document import add_openapi
from export.serve.page_routes import add_page
from export.serve.rest.answers import JSON_LENGTH, READ, json_response
from export.serve.rest.open_inference.routes import add_open_inference
from export.serve.rest.tf_serving.routes import add_tf_serving, malformed
from export.serve.workers import Workers


def create_app(
    model: ServedModel, limits: Limits, origins: Sequence[str] = ()
) -> FastAPI:
    """Returns the ASGI application.

    Args:
        model: The model being served.
        limits: Of the requests.
        origins: Whose pages in a browser may ask; `*` stands for all.
    """
    metrics = Metrics(model)
    workers = Workers(limits, metrics)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        workers.close()

    # FastAPI's own pages load scripts from elsewhere.
    app = FastAPI(openapi_url=None, lifespan=lifespan, redirect_slashes=False)
    _add_origins(app, origins)
    app.add_middleware(AccessLog, metrics=metrics)
    app.add_exception_handler(Refusal, _refuse)
    app.add_exception_handler(HTTPException, _refuse_path)
    # Routes are tried in this order.
    add_tf_serving(app, model, workers)
    add_open_inference(app, model, workers)
    _add_health(app, model, metrics)
    add_page(app, model, workers, limits)
    add_openapi(app)
    return app


def _add_origins(app, origins):
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=[*READ, "POST"],
            allow_headers=["Content-Type", "Content-Encoding", JSON_LENGTH],
            expose_headers=[JSON_LENGTH],
        )


def _add_health(app, model, metrics):
    @app.api_route("/healthz", methods=READ)
    async def health() -> Response:
        return json_response({"status": "ok", "version": model.current.number})

    @app.api_route("/metrics", methods=READ)
    @app.api_route("/monitoring/prometheus/metrics", methods=READ)
    async def prometheus() -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")


async def _refuse(request: Request, refusal: Refusal) -> Response:
    return json_response({"error": refusal.message}, refusal.status)


async def _refuse_path(request: Request, problem: HTTPException) -> Response:
    """Unknown paths and methods; within /v1 as TensorFlow Serving has it."""
    if request.url.path.startswith("/v1/"):
        return await _refuse(request, malformed(request))
    return json_response({"error": problem.detail}, problem.status_code)
