"""The key is checked before anything of the body is read."""

from typing import Any

import pytest
from fastapi import FastAPI

from app.keys.service import create_key
from app.kit.db import Database
from tests.api.path_parameters import SCHEMA
from tests.conftest import NOON

WITH_BODY = [
    pytest.param(method, path, id=operation["operationId"])
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
    if "requestBody" in operation
]


async def answer_of(app: FastAPI, method: str, path: str, key: str | None) -> tuple[int, int]:
    """Return the status of the answer, and how many times the application read the body."""
    read = 0
    statuses = []

    async def receive() -> Any:
        nonlocal read
        read += 1
        return {"type": "http.request", "body": b"{", "more_body": False}

    async def send(message: Any) -> None:
        statuses.append(message.get("status"))

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    if key is not None:
        headers.append((b"authorization", f"Bearer {key}".encode()))
    url = path.replace("{tool}", "save_memory").replace("{", "").replace("}", "")
    query = b"format=jsonl&chat_id=new"  # the import requires it
    scope = {"type": "http", "method": method.upper(), "path": url, "headers": headers, "query_string": query}
    await app(scope, receive, send)
    return statuses[0], read


def test_many_operations_have_a_body() -> None:
    assert len(WITH_BODY) > 25


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
async def test_no_body_is_read_without_a_valid_key(app: FastAPI, key: str, method: str, path: str) -> None:
    assert await answer_of(app, method, path, None) == (401, 0)
    assert await answer_of(app, method, path, f"{key}x") == (401, 0)


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
async def test_no_body_is_read_without_the_scope(
    app: FastAPI, database: Database, tenant: str, method: str, path: str
) -> None:
    scopes = ["read", "write"] if path == "/v1/keys" else ["admin"]
    async with database.unit_of_work() as db_session:
        other = await create_key(db_session, tenant, scopes, NOON)
    expected = (422, 1) if path == "/v1/tokens" else (403, 0)  # a key with any scopes may create tokens
    assert await answer_of(app, method, path, other.text) == expected


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
async def test_with_a_key_the_body_is_read(app: FastAPI, database: Database, method: str, path: str) -> None:
    async with database.unit_of_work() as db_session:
        key = await create_key(db_session, "default", ["read", "write", "admin"], NOON)
    assert await answer_of(app, method, path, key.text) == (422, 1)
