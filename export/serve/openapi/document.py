"""The OpenAPI document of an application."""

import re
from typing import Any

from fastapi import FastAPI, Response
from fastapi.routing import APIRoute

from encapnet_tf.version import __version__
from export.serve.openapi.operations import OPERATIONS, Operation
from export.serve.openapi.schemas import SCHEMAS, reference
from export.serve.rest.answers import READ, json_response

_INFO = {
    "title": "encapnet_tf",
    "version": __version__,
    "description": "A model behind TensorFlow Serving's REST protocol and "
    "the Open Inference Protocol v2. Bodies may be gzip'd.",
}
_ERROR = {
    "description": "What is wrong.",
    "content": {"application/json": {"schema": reference("Error")}},
}


def add_openapi(app: FastAPI) -> None:
    """Adds the document to an application that has all its other routes."""
    answer: dict[str, Any] = {}

    @app.api_route("/openapi.json", methods=READ)
    async def openapi() -> Response:
        return json_response(answer)

    answer |= _document(app)


def _document(app):
    paths: dict[str, Any] = {}
    for route in app.routes:
        if isinstance(route, APIRoute):
            methods = {
                method.lower(): _described(route, method)
                for method in sorted(route.methods)
            }
            paths[route.path] = paths.get(route.path, {}) | methods
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def _described(route, method):
    operation = OPERATIONS[route.name]
    described = {
        "operationId": re.sub(r"\W+", "_", method.lower() + route.path),
        "summary": operation.summary,
        "parameters": _parameters(route, operation),
        "responses": {"default": _ERROR},
    }
    if operation.takes:
        described["requestBody"] = {
            "required": True,
            "content": _content(operation.takes),
        }
    if operation.answers:
        content = {} if method == "HEAD" else _content(operation.answers)
        described["responses"]["200"] = {
            "description": "The answer.",
            "content": content,
        }
    return described


def _parameters(route, operation: Operation):
    named = [("path", name) for name in re.findall(r"{(\w+)}", route.path)]
    named += [("query", operation.query), ("header", operation.header)]
    return [
        {
            "name": name,
            "in": place,
            "required": place == "path",
            "schema": {"type": "string"},
        }
        for place, name in named
        if name
    ]


def _content(kinds):
    """Schemas are those of JSON; the others are media types."""
    return {
        ("application/json" if kind in SCHEMAS else kind): {
            "schema": reference(kind) if kind in SCHEMAS else {}
        }
        for kind in kinds
    }
