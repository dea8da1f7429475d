"""The OpenAPI document, held against the routes and their answers."""

import re

import pytest
from fastapi.openapi.models import OpenAPI
from fastapi.routing import APIRoute

from tests.export.serve import served

IMAGES = served.images(2)
TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool,
    "integer": int,
}  # fmt: skip


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return served.Served(folder, {"stable": 1})


@pytest.fixture(scope="module")
def document(pets):
    return pets.get("/openapi.json").json


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def resolved(document, schema):
    name = schema.get("$ref", "").removeprefix("#/components/schemas/")
    return document["components"]["schemas"][name] if name else schema


def problems(document, schema, value, where="it"):
    """What a value lacks, or has too much, of a schema."""
    schema = resolved(document, schema)
    kind = TYPES.get(schema.get("type"), object)
    if not isinstance(value, kind):
        yield f"{where} is no {schema['type']}"
    elif kind is list:
        for item in value:
            yield from problems(document, schema["items"], item, f"{where}[]")
    elif kind is dict and "properties" in schema:
        known = schema["properties"]
        ways = schema.get("oneOf", [{"required": schema.get("required", [])}])
        if sum(set(way["required"]) <= value.keys() for way in ways) != 1:
            yield f"{where} has not what is required"
        yield from (f"{where}.{k} unknown" for k in value.keys() - known.keys())
        for key in value.keys() & known.keys():
            inner = known[key]
            yield from problems(document, inner, value[key], f"{where}.{key}")
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is none of {schema['enum']}"


def test_it_is_valid(document):
    OpenAPI.model_validate(document)
    ids = [operation["operationId"] for *_, operation in operations(document)]
    assert len(ids) == len(set(ids))
    for reference in re.findall(r"'\$ref': '([^']*)'", str(document)):
        assert resolved(document, {"$ref": reference})


def test_it_names_every_route_and_no_other(pets, document):
    routes = {
        (route.path, method.lower())
        for route in pets.app.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    }
    assert len(routes) > 50
    assert {(path, m) for path, m, _ in operations(document)} == routes


def test_every_part_of_a_path_is_described(document):
    for path, _, operation in operations(document):
        parameters = operation["parameters"]
        named = [x["name"] for x in parameters if x["in"] == "path"]
        assert named == re.findall(r"{(\w+)}", path)
        assert operation["summary"].endswith(".")


def addressed(path):
    for part, value in {
        "name": "pets", "number": "1", "version": "1", "label": "stable",
        "file": "0_cat.png",
    }.items():  # fmt: skip
        path = path.replace(f"{{{part}}}", value)
    return path


def test_every_get_answers_as_described(pets, document):
    for path, method, operation in operations(document):
        if method != "get":
            continue
        answer = pets.get(addressed(path))
        assert pets.ask("HEAD", addressed(path)).status == answer.status
        responses = operation["responses"]
        assert (answer.status == 200) == ("200" in responses), path
        described = responses.get(str(answer.status), responses["default"])
        kind = answer.headers["content-type"].partition(";")[0]
        kinds = described["content"]
        assert kind in kinds or f"{kind.partition('/')[0]}/*" in kinds, path
        if kind == "application/json":
            schema = kinds[kind]["schema"]
            assert list(problems(document, schema, answer.json)) == [], path


def requests():
    rows = IMAGES.tolist()
    named = {"instances": rows, "signature_name": "serving_default"}
    yield "/v1/models/{name}:predict", named
    yield "/v1/models/{name}/labels/{label}:predict", {"inputs": rows}
    tensor = served.tensor("images", "UINT8", IMAGES.shape, rows)
    asked = {
        "id": "a", "inputs": [tensor], "outputs": [{"name": "scores"}],
        "parameters": {"signature_name": "serving_default"},
    }  # fmt: skip
    yield "/v2/models/{name}/infer", asked
    yield "/v2/models/{name}/versions/{version}/infer", {"inputs": [tensor]}


def test_what_is_posted_and_answered_is_as_described(pets, document):
    for path, content in requests():
        operation = document["paths"][path]["post"]
        body = operation["requestBody"]["content"]["application/json"]
        assert list(problems(document, body["schema"], content)) == []
        answer = pets.ask("POST", addressed(path), content)
        assert answer.status == 200
        described = operation["responses"]["200"]["content"]
        schema = described["application/json"]["schema"]
        assert list(problems(document, schema, answer.json)) == []


def test_errors_are_as_described(pets, document):
    for path, method, operation in operations(document):
        if method == "post":
            answer = pets.ask("POST", addressed(path), b"{")
            default = operation["responses"]["default"]["content"]
            schema = default["application/json"]["schema"]
            assert answer.status == 400
            assert list(problems(document, schema, answer.json)) == []


def test_the_check_of_these_tests_finds_what_is_wrong(document):
    schema = {"$ref": "#/components/schemas/InferRequest"}
    found = list(problems(document, schema, {"inputs": [{"name": 3}], "x": 1}))
    assert "it.x unknown" in found
    assert "it.inputs[].name is no string" in found
    assert "it.inputs[] has not what is required" in found
    both = {"instances": [], "inputs": []}
    schema = {"$ref": "#/components/schemas/PredictRequest"}
    assert list(problems(document, schema, both))
