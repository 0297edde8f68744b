"""The schema says everything, and what it gives as examples works when sent as it stands."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.keys.service import create_key
from app.kit.db import Database
from tests.conftest import NOON, client_of
from tests.layers.samples import SAMPLES, list_settings
from tests.path_parameters import SCHEMA, fill_path
from tests.talk import Json, append, ok, put, talk

OPERATIONS = [
    pytest.param(path, method, operation, id=operation["operationId"])
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
]
OPEN = {"/healthz", "/readyz"}
LIVELY = {"history": {"keep_messages": 4, "grow_messages": 4, "max_messages": 9}} | list_settings()
"""Settings under which 16 messages leave something for every layer to make, also while no worker runs."""
BUILT = {
    "PUT /v1/chats/{chat_id}",
    "GET /v1/chats/{chat_id}",
    "GET /v1/chats",
    "DELETE /v1/chats/{chat_id}",
    "DELETE /v1/users/{user_id}",
    "GET /v1/presets",
    "POST /v1/chats/{chat_id}/messages",
    "GET /v1/chats/{chat_id}/messages",
    "GET /v1/chats/{chat_id}/messages/{message_id}",
    "GET /v1/chats/{chat_id}/context",
    "POST /v1/chats/{chat_id}/context",
    "GET /v1/chats/{chat_id}/inclusion",
    "GET /v1/tools",
    "POST /v1/chats/{chat_id}/tools/{tool}",
    "GET /v1/chats/{chat_id}/checkpoints/{name}",
    "GET /v1/chats/{chat_id}/lines/{line}",
    "GET /v1/keys/{key_id}",
    "POST /v1/keys",
    "GET /v1/keys",
    "DELETE /v1/keys/{key_id}",
    "POST /v1/tokens",
    "GET /healthz",
    "GET /readyz",
    "GET /v1/work",
    "GET /v1/work/{work_id}",
    "POST /v1/work/retry",
    "POST /v1/work/{work_id}/retry",
    "GET /v1/usage",
}.union(*(sample.operations for sample in SAMPLES.values()))
"""What clients call by now; a name that changed or went away breaks them."""


@pytest.fixture
async def admin(app: FastAPI, database: Database, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client that may do everything."""
    async with database.unit_of_work() as db_session:
        key = await create_key(db_session, tenant, ["read", "write", "admin"], NOON)
    async with client_of(app, key.text) as client:
        yield client


def test_what_clients_call_is_there() -> None:
    named = {f"{method.upper()} {path}" for path, methods in SCHEMA["paths"].items() for method in methods}
    assert named >= BUILT


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_an_operation_says_what_it_does_and_what_it_takes(path: str, method: str, operation: Json) -> None:
    assert operation["summary"]
    assert operation["description"].endswith(".")
    assert len(operation["tags"]) == 1
    for parameter in operation.get("parameters", ()):
        assert parameter["description"], parameter["name"]
    assert ("security" in operation) == (path not in OPEN)
    in_path = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", path))


def test_operations_stand_in_the_order_to_read_them_in() -> None:
    tags = [operation["tags"][0] for methods in SCHEMA["paths"].values() for operation in methods.values()]
    assert list(dict.fromkeys(tags)) == [tag["name"] for tag in SCHEMA["tags"]]
    assert tags == sorted(tags, key=list(dict.fromkeys(tags)).index)


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_a_summary_is_the_first_sentence(path: str, method: str, operation: Json) -> None:
    assert operation["description"].startswith(f"{operation['summary']}."), (method, path)


def test_an_operation_is_called_by_one_name_alone() -> None:
    names = [operation["operationId"] for methods in SCHEMA["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))


def test_every_field_has_a_description() -> None:
    schemas = SCHEMA["components"]["schemas"]
    of_the_framework = {"HTTPValidationError", "ValidationError"}
    assert not of_the_framework & set(schemas), "problems are told in one shape alone"
    # A section that says of itself what the field would say of it is only referred to.
    nameless = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, told in schema.get("properties", {}).items()
        if not (told.get("description") or schemas.get(told.get("$ref", "").rpartition("/")[2], {}).get("description"))
    ]
    assert nameless == []


def test_every_body_has_an_example() -> None:
    assert {name for name, schema in _bodies() if not schema.get("examples")} == set()


def test_the_bearer_scheme_is_declared_for_authorize() -> None:
    (scheme,) = SCHEMA["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")


def test_the_schema_leads_nowhere_outside() -> None:
    assert re.findall(r"https?://[^\"\s]*", json.dumps(SCHEMA)) == []
    assert "servers" not in SCHEMA


async def test_the_schema_and_the_explorer_are_served(app: FastAPI) -> None:
    async with client_of(app, None) as nobody:
        assert ok(await nobody.get("/openapi.json"), 200) == SCHEMA
        assert 'url: "openapi.json"' in (await nobody.get("/docs")).text


async def test_the_examples_work_from_an_empty_service_on(admin: httpx.AsyncClient) -> None:
    """In the order of the page, in which what has to be there is made before."""
    known = {
        "chat_id": "lighthouse",
        "user_id": "mira",
        "message_id": "m1",
        "name": "before the storm",
        "tool": "save_memory",
    }
    for path, method, operation in _in_the_order_of_a_life():
        url, query = await fill_path(admin, path, operation, known), _required_query(operation)
        for example in _examples(operation) or [None]:
            answer = await admin.request(method, url, json=example, params=query)
            assert answer.is_success, (method, url, answer.text)
            _check_answer(operation, answer)
        if operation["operationId"] == "append":
            await put(admin, known["chat_id"], status=200, settings=LIVELY)
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


def _bodies() -> Iterator[tuple[str, Json]]:
    """The schema of each request's body."""
    for methods in SCHEMA["paths"].values():
        for operation in methods.values():
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                named = schema.get("anyOf", [schema])[0]["$ref"].rpartition("/")[2]
                yield operation["operationId"], SCHEMA["components"]["schemas"][named]


def _examples(operation: Json) -> list[Any]:
    return [example for name, schema in _bodies() if name == operation["operationId"] for example in schema["examples"]]


def _required_query(operation: Json) -> Json:
    """The examples of what has to be in the query string."""
    parameters = operation.get("parameters", ())
    return {one["name"]: one["schema"]["examples"][0] for one in parameters if one["in"] == "query" and one["required"]}


def _in_the_order_of_a_life() -> list[tuple[str, str, Json]]:
    """All operations: what makes something first, what ends something last."""
    found = [
        (path, method, operation) for path, methods in SCHEMA["paths"].items() for method, operation in methods.items()
    ]
    last = {
        "put_messages": 2,
        "cut_off_messages": 3,
        "delete_message": 4,
        "delete_checkpoint": 4,
        "erase_chat": 5,
        "erase_user": 6,
        "revoke_key": 7,
    }
    deletes = {operation["operationId"]: 1 for path, method, operation in found if method == "delete"}
    return sorted(found, key=lambda one: (deletes | last).get(one[2]["operationId"], 0))


def _check_answer(operation: Json, answer: httpx.Response) -> None:
    """The answer is what the operation says of this status, with no field besides."""
    said = operation["responses"][str(answer.status_code)].get("content", {}).get("application/json")
    if said:
        assert list(_mismatches(answer.json(), said["schema"])) == []
    else:
        assert answer.content == b""


def _mismatches(value: Any, schema: Json, place: str = "answer") -> Iterator[str]:
    """Where a JSON value is not what the schema says, as far as types and fields go."""
    if "$ref" in schema:
        yield from _mismatches(value, SCHEMA["components"]["schemas"][schema["$ref"].rpartition("/")[2]], place)
    elif "anyOf" in schema:
        if all(any(True for _ in _mismatches(value, one, place)) for one in schema["anyOf"]):
            yield f"{place} is none of what it may be: {value!r}"
    elif not isinstance(value, _KINDS[schema.get("type", "any")]) or value not in schema.get("enum", [value]):
        yield f"{place} is {value!r}"
    elif isinstance(value, dict) and "properties" in schema:
        yield from (f"{place}.{name} is not told of" for name in value.keys() - schema["properties"].keys())
        yield from (f"{place}.{name} is missing" for name in set(schema.get("required", ())) - value.keys())
        for name in value.keys() & schema["properties"].keys():
            yield from _mismatches(value[name], schema["properties"][name], f"{place}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _mismatches(inner, schema.get("items", {}), f"{place}[{index}]")


_KINDS: dict[str, type | tuple[type, ...]] = {
    "any": object,
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
