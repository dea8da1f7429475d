"""The routes of the page: its files, what it is told, what it shows."""

import importlib.resources
import mimetypes

from fastapi import FastAPI, Request, Response

from export.choices import RECONSTRUCT
from export.serve.limits import Limits, Refusal
from export.serve.model.served import ServedModel
from export.serve.rest.answers import READ, json_response
from export.serve.workers import Workers

# The page loads from nowhere but this server.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def add_page(
    app: FastAPI, model: ServedModel, workers: Workers, limits: Limits
) -> None:
    """Adds the page to an application.

    Args:
        app: The application.
        model: The model being served.
        workers: They decode what the page shows.
        limits: Of the requests.
    """
    _add_files(app)

    @app.api_route("/page.json", methods=READ)
    async def about():
        version = model.current
        about = {
            "name": model.name,
            "version": version.number,
            "classes": version.labels,
            "image_shape": version.image_shape,
            "samples": list(version.samples),
            "drawing": version.drawing,
            "reconstruct": RECONSTRUCT in version.signatures,
            "max_megabytes": limits.max_megabytes,
            "max_megapixels": limits.max_megapixels,
        }
        return json_response(about)

    @app.api_route("/samples/{file}", methods=READ)
    async def sample(file: str):
        content = model.current.samples.get(file)
        if content is None:
            raise Refusal(404, "There is no such sample.")
        return Response(content, media_type="image/png", headers=_HEADERS)

    @app.post("/seen")
    async def seen(request: Request):
        """From an image file to the image that the network is given."""
        image = await workers.seen(request, model.current)
        return Response(image, media_type="image/png", headers=_HEADERS)


def _add_files(app):
    for file in (importlib.resources.files("export.serve") / "page").iterdir():
        path = "/" if file.name == "index.html" else f"/{file.name}"
        media_type, _ = mimetypes.guess_type(file.name)
        page = _serve(file.read_bytes(), media_type)
        app.add_api_route(path, page, methods=READ)


def _serve(content, media_type):
    async def page():
        return Response(content, media_type=media_type, headers=_HEADERS)

    return page
