"""The JSON of requests and answers, as JSON Schema."""

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_YES_OR_NO: Schema = {"type": "boolean"}
_PARAMETERS: Schema = {"type": "object"}
_SHAPE = {"type": "array", "items": {"type": "integer"}}


def reference(name: str) -> Schema:
    """Points to one of the schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(optional: Schema | None = None, /, **required: Schema) -> Schema:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
    }


def _list(item):
    return {"type": "array", "items": item}


def _tensor(optional, **required):
    return _object(optional, name=_TEXT, **required)


def _one_of(*keys):
    return [{"required": [key]} for key in keys]


_SPEC = _tensor(None, datatype=_TEXT, shape=_SHAPE)
_DATA = {"parameters": _PARAMETERS, "data": {}}

SCHEMAS: dict[str, Schema] = {
    "Error": _object(error=_TEXT),
    "PredictRequest": {
        "type": "object",
        "properties": {
            "signature_name": _TEXT | {"default": "serving_default"},
            "instances": _list({}),
            "inputs": {},
        },
        "oneOf": _one_of("instances", "inputs"),
    },
    "PredictAnswer": {
        "type": "object",
        "properties": {"predictions": _list({}), "outputs": {}},
        "oneOf": _one_of("predictions", "outputs"),
    },
    "ModelStatus": _object(
        model_version_status=_list(
            _object(
                version=_TEXT,
                state={"enum": ["LOADING", "AVAILABLE", "END"]},
                status=_object(error_code=_TEXT, error_message=_TEXT),
            )
        )
    ),
    "Signatures": _object(
        model_spec=_object(name=_TEXT, signature_name=_TEXT, version=_TEXT),
        metadata=_object(
            signature_def=_object(signature_def={"type": "object"})
        ),
    ),
    "ServerMetadata": _object(
        name=_TEXT, version=_TEXT, extensions=_list(_TEXT)
    ),
    "Live": _object(live=_YES_OR_NO),
    "Ready": _object(ready=_YES_OR_NO),
    "ModelReady": _object(name=_TEXT, ready=_YES_OR_NO),
    "ModelMetadata": _object(
        name=_TEXT,
        versions=_list(_TEXT),
        platform=_TEXT,
        inputs=_list(_SPEC),
        outputs=_list(_SPEC),
    ),
    "InferRequest": _object(
        {
            "id": _TEXT,
            "parameters": _PARAMETERS,
            "outputs": _list(_tensor({"parameters": _PARAMETERS})),
        },
        inputs=_list(_tensor(_DATA, datatype=_TEXT, shape=_SHAPE)),
    ),
    "InferAnswer": _object(
        {"id": _TEXT},
        model_name=_TEXT,
        model_version=_TEXT,
        outputs=_list(_tensor(_DATA, datatype=_TEXT, shape=_SHAPE)),
    ),
    "Health": _object(status=_TEXT, version={"type": "integer"}),
    # Nobody else need know what a page and its server tell each other.
    "Page": {"type": "object"},
    "OpenAPI": {"type": "object"},
}
