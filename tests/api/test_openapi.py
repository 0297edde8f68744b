"""The OpenAPI schema is complete and correct: it lists every route, and its examples work."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route

from app.registry import LAYERS
from app.transfer.file_formats import FILE_FORMATS
from app.web.docs import docs_router
from app.web.schema import TAG_DESCRIPTIONS
from tests.api.path_parameters import APP, SCHEMA, fill_path
from tests.conftest import client_of
from tests.layers.samples import list_settings
from tests.talk import Json, append, ok, put, talk

SCHEMAS: Json = SCHEMA["components"]["schemas"]
OPERATIONS: dict[tuple[str, str], Json] = {
    (method.upper(), path): operation
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
}
"""The operations of the schema by method and path."""

each_operation = pytest.mark.parametrize(
    ("key", "operation"),
    [pytest.param(key, operation, id=operation["operationId"]) for key, operation in OPERATIONS.items()],
)

WITHOUT_KEY = {"/healthz", "/readyz"}
FILES = {one.media_type for one in FILE_FORMATS.values()}
UNLISTED = {"/metrics"} | {route.path for route in docs_router().routes if isinstance(route, Route)}
"""The routes that are not part of the API for clients."""

FILLING = {"history": {"keep_messages": 4, "grow_messages": 4, "max_messages": 9}} | list_settings()
"""Settings under which 16 messages create an item for each layer, even without a worker."""


def find_routes(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    """Return the routes, including those of included routers."""
    for route in routes:
        if isinstance(route, Route):
            yield route
        else:
            included = getattr(route, "original_router", None)
            assert included is not None, f"cannot list the routes of {route!r}"
            yield from find_routes(included.routes)


ROUTES = {
    (method, route.path_format): route
    for route in find_routes(APP.routes)
    if isinstance(route, APIRoute) and route.path not in UNLISTED
    for method in route.methods or ()
}
"""The routes of the application by method and path."""


def test_no_operation_is_renamed_or_removed() -> None:
    # The file has the operations that clients call; append new ones.
    called = set((Path(__file__).parent / "operations.txt").read_text().splitlines())
    assert called - {f"{method} {path}" for method, path in ROUTES} == set()


def test_the_schema_lists_every_route() -> None:
    assert set(OPERATIONS) == set(ROUTES)
    unlisted = {route.path for route in find_routes(APP.routes) if not route.include_in_schema}
    assert unlisted == UNLISTED


def test_headings_are_plain_and_differ() -> None:
    headings = Counter(operation["summary"] for operation in OPERATIONS.values())
    assert [heading for heading, times in headings.items() if times > 1] == []
    assert [heading for heading in headings if "`" in heading] == []  # /docs shows them as plain text


@each_operation
def test_an_operation_is_described(key: tuple[str, str], operation: Json) -> None:
    route = ROUTES[key]
    assert operation["operationId"] == route.name
    assert operation["description"] == route.description
    assert operation["description"].endswith(".")
    if route.summary:
        assert operation["summary"] == route.summary
    else:
        assert operation["description"].startswith(f"{operation['summary']}.")
    assert operation["tags"] == route.tags
    assert operation["tags"][0] in {tag["name"] for tag in SCHEMA["tags"]}
    assert len(operation["tags"]) == 1


@each_operation
def test_an_operation_describes_its_parameters(key: tuple[str, str], operation: Json) -> None:
    parameters = operation.get("parameters", ())
    assert [one["name"] for one in parameters if not one.get("description")] == []
    in_path = [one["name"] for one in parameters if one["in"] == "path"]
    assert sorted(in_path) == sorted(re.findall(r"{(\w+)}", key[1]))


@each_operation
def test_an_operation_requires_a_key(key: tuple[str, str], operation: Json) -> None:
    schemes = [name for requirement in operation.get("security", ()) for name in requirement]
    assert schemes == ([] if key[1] in WITHOUT_KEY else list(SCHEMA["components"]["securitySchemes"]))


@each_operation
def test_each_answer_has_a_model(key: tuple[str, str], operation: Json) -> None:
    route = ROUTES[key]
    answers = {int(status): response for status, response in operation["responses"].items()}
    assert (route.status_code or 200) in answers
    for status, response in answers.items():
        assert response["description"]
        if status in (204, 304):
            assert "content" not in response
            continue
        if response["content"].keys() == FILES:
            assert (status, {content["schema"]["format"] for content in response["content"].values()}) == (
                200,
                {"binary"},
            )
            continue
        ((media_type, content),) = response["content"].items()
        name = name_of_model(content["schema"])
        assert media_type == ("application/problem+json" if name == "Problem" else "application/json")
        if status >= 400 and key != ("GET", "/readyz"):
            assert name == "Problem"
        elif status < 300:
            assert name != "Problem"
            assert route.response_model is not None


@each_operation
def test_refusals_of_the_protocol_are_documented(key: tuple[str, str], operation: Json) -> None:
    assert {"408", "414", "431"} <= set(operation["responses"])


def test_operations_are_in_reading_order() -> None:
    tags = [operation["tags"][0] for operation in OPERATIONS.values()]
    assert list(dict.fromkeys(tags)) == [tag["name"] for tag in SCHEMA["tags"]]
    assert tags == sorted(tags, key=list(dict.fromkeys(tags)).index)


def test_the_tags_of_operations_are_described() -> None:
    descriptions = {tag["name"]: tag.get("description", "") for tag in SCHEMA["tags"]}
    used = {tag for operation in OPERATIONS.values() for tag in operation["tags"]}
    assert {tag for tag in used if not descriptions[tag].endswith(".")} == set()
    assert used == TAG_DESCRIPTIONS.keys(), "a description of a tag that no operation has"


def test_operation_ids_are_unique() -> None:
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(names) == len(set(names))


def test_every_field_has_a_description() -> None:
    assert not {"HTTPValidationError", "ValidationError"} & set(SCHEMAS), "every problem has the model Problem"
    fields = [field for name, schema in SCHEMAS.items() for field in _fields(schema, name)]
    assert len(fields) > len(SCHEMAS)
    # A field whose model has a description of its own refers to the model.
    assert [where for where, field in fields if not (field.get("description") or _referred(field))] == []


def test_every_body_has_an_example() -> None:
    assert {name for name, schema in _bodies() if not schema.get("examples")} == set()


def test_the_bearer_scheme_is_declared_for_authorize() -> None:
    (scheme,) = SCHEMA["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_the_schema_has_no_external_links() -> None:
    assert re.findall(r"https?://[^\"\s]*", json.dumps(SCHEMA)) == []
    assert "servers" not in SCHEMA


async def test_the_schema_and_the_explorer_are_served(app: FastAPI) -> None:
    async with client_of(app, None) as client:
        assert ok(await client.get("/openapi.json"), 200) == SCHEMA
        assert 'url: "openapi.json"' in (await client.get("/docs")).text


async def test_the_examples_work_in_an_empty_service(admin: httpx.AsyncClient) -> None:
    known = {
        "chat_id": "lighthouse",
        "user_id": "mira",
        "message_id": "m1",
        "name": "before the storm",
    }
    for method, path in _in_working_order():
        operation = OPERATIONS[method, path]
        query = _required_query(operation)
        for tool, example in _calls(operation):
            url = await fill_path(admin, path, operation, known | {"tool": tool})
            file = {"content": example} if isinstance(example, str) else {"json": example}
            answer = await admin.request(method, url, params=query, **file)
            assert answer.is_success, (method, url, answer.text)
            _check_answer(operation, answer)
        if operation["operationId"] == "append":
            await put(admin, known["chat_id"], status=200, settings=FILLING)
            await append(admin, talk(3, 16), known["chat_id"])  # enough for a memo book
        elif operation["operationId"] == "create_key":
            known["key_id"] = answer.json()["id"]


async def test_each_field_of_a_context_is_in_the_schema(admin: httpx.AsyncClient) -> None:
    await put(admin, characters=[{"name": "Kai"}], settings={"time": True})
    await append(admin, talk(1, 65))
    operation = SCHEMA["paths"]["/v1/chats/{chat_id}/context"]["get"]
    for name in ("segments", "openai", "anthropic", "text"):
        answer = await admin.get("/v1/chats/c/context", params={"format": name, "max_tokens": 150})
        assert answer.json()["omitted"]
        _check_answer(operation, answer)


@pytest.mark.parametrize(
    ("value", "schema", "wrong"),
    [
        (True, {"type": "integer"}, "answer is True"),
        (1.5, {"type": "integer"}, "answer is 1.5"),
        (None, {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "answer matches no schema: None"),
        ("b", {"type": "string", "enum": ["a"]}, "answer is 'b'"),
        ("b", {"type": "string", "const": "a"}, "answer is 'b'"),
        ({"a": 1, "b": 2}, {"type": "object", "properties": {"a": {}}}, "answer.b is not in the schema"),
        ({}, {"type": "object", "properties": {"a": {}}, "required": ["a"]}, "answer.a is missing"),
        ({"a": "x"}, {"type": "object", "additionalProperties": {"type": "integer"}}, "answer.a is 'x'"),
        ([1, "x"], {"type": "array", "items": {"type": "integer"}}, "answer[1] is 'x'"),
        ({"a": 1}, {"type": "object"}, None),
        (2, {"type": "number"}, None),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
    ],
)
def test_the_comparison_finds_mismatches(value: Any, schema: Json, wrong: str | None) -> None:
    assert list(_mismatches(value, schema)) == ([wrong] if wrong else [])


def name_of_model(schema: Json) -> str:
    """Return the name of the model that a schema refers to. Raises KeyError if it does not refer to one."""
    return str(schema["$ref"]).removeprefix("#/components/schemas/")


def _fields(schema: Any, where: str) -> Iterator[tuple[str, Json]]:
    """Return the fields of a schema at any depth, each with its location."""
    if isinstance(schema, dict):
        for name, field in schema.get("properties", {}).items():
            yield f"{where}.{name}", field
            yield from _fields(field, f"{where}.{name}")
        for name in ("items", "additionalProperties"):
            yield from _fields(schema.get(name), where)
        for name in ("anyOf", "allOf", "oneOf"):
            for inner in schema.get(name, ()):
                yield from _fields(inner, where)


def _referred(field: Json) -> str | None:
    """Return the description of the model that a field refers to, or None."""
    model = SCHEMAS[name_of_model(field)] if "$ref" in field else {}
    description: str | None = model.get("description")
    return description


def _bodies() -> Iterator[tuple[str, Json]]:
    """Return the models of each operation's request body."""
    for operation in OPERATIONS.values():
        if "requestBody" in operation and operation["requestBody"]["content"].keys() != FILES:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            for one in schema.get("anyOf", [schema]):
                if one != {"type": "null"}:
                    yield operation["operationId"], SCHEMAS[name_of_model(one)]


def _examples(operation: Json) -> list[Any]:
    if operation.get("requestBody", {}).get("content", {}).keys() == FILES:
        content = operation["requestBody"]["content"]["application/jsonl"]
        return [example["value"] for example in content["examples"].values()]
    return [example for name, schema in _bodies() if name == operation["operationId"] for example in schema["examples"]]


def _required_query(operation: Json) -> Json:
    """Return an example value for each required parameter of the query string."""
    parameters = operation.get("parameters", ())
    return {one["name"]: one["schema"]["examples"][0] for one in parameters if one["in"] == "query" and one["required"]}


def _in_working_order() -> list[tuple[str, str]]:
    """Return all operations in the schema's order, except that those that remove something come last."""
    last = {
        "put_messages": 2,
        "cut_off_messages": 3,
        "delete_message": 4,
        "delete_checkpoint": 4,
        "erase_chat": 5,
        "erase_user": 6,
        "revoke_key": 7,
    }
    assert last.keys() <= {operation["operationId"] for operation in OPERATIONS.values()}
    return sorted(OPERATIONS, key=lambda key: last.get(OPERATIONS[key]["operationId"], int(key[0] == "DELETE")))


def _calls(operation: Json) -> list[tuple[str, Any]]:
    """Return the examples of an operation, each with a tool, which only matters for the operation that calls one."""
    if operation["operationId"] != "call_tool":
        return [("", example) for example in _examples(operation) or [None]]
    schemas = [(tool.name, tool.arguments.model_json_schema()) for layer in LAYERS for tool in layer.tools]
    return [(name, example) for name, schema in schemas for example in schema["examples"]]


def _check_answer(operation: Json, answer: httpx.Response) -> None:
    """Check that the answer has the documented status, type and schema, no other fields, and may not be stored."""
    content = operation["responses"][str(answer.status_code)].get("content", {})
    assert answer.headers["cache-control"] == ("private, no-cache" if "etag" in answer.headers else "no-store")
    if content:
        assert answer.headers["content-type"] in content
        if content.keys() == FILES:
            assert answer.content
            return
        assert len(content) == 1
        assert list(_mismatches(answer.json(), content[answer.headers["content-type"]]["schema"])) == []
    else:
        assert answer.content == b""


def _mismatches(value: Any, schema: Json, where: str = "answer") -> Iterator[str]:
    """Return where a JSON value differs from a schema in its types, fields and constants."""
    if "$ref" in schema:
        yield from _mismatches(value, SCHEMAS[name_of_model(schema)], where)
    elif "anyOf" in schema:
        if all(any(True for _ in _mismatches(value, one, where)) for one in schema["anyOf"]):
            yield f"{where} matches no schema: {value!r}"
    elif not _has_type(value, schema) or value not in schema.get("enum", [schema.get("const", value)]):
        yield f"{where} is {value!r}"
    elif isinstance(value, dict):
        yield from _mismatches_of_fields(value, schema, where)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _mismatches(inner, schema.get("items", {}), f"{where}[{index}]")


def _mismatches_of_fields(value: Json, schema: Json, where: str) -> Iterator[str]:
    fields = schema.get("properties", {})
    others = schema.get("additionalProperties", "properties" not in schema)
    yield from (f"{where}.{name} is missing" for name in set(schema.get("required", ())) - value.keys())
    for name, inner in value.items():
        if name in fields:
            yield from _mismatches(inner, fields[name], f"{where}.{name}")
        elif isinstance(others, dict):
            yield from _mismatches(inner, others, f"{where}.{name}")
        elif not others:
            yield f"{where}.{name} is not in the schema"


def _has_type(value: Any, schema: Json) -> bool:
    if "type" not in schema:
        return True
    if isinstance(value, bool):
        return bool(schema["type"] == "boolean")
    return isinstance(value, _TYPES[schema["type"]])


_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
