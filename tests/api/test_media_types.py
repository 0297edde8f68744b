"""What bodies and answers are, for every operation: the documented media types, and whether they may be stored."""

import re

import httpx
import pytest
from fastapi import FastAPI

from app.transfer.file_formats import FILE_FORMATS
from tests.api.path_parameters import SCHEMA
from tests.conftest import client_of
from tests.talk import Json

OPERATIONS = [
    pytest.param(method.upper(), path, operation, id=operation["operationId"])
    for path, operations in SCHEMA["paths"].items()
    for method, operation in operations.items()
]
WITH_BODY = [
    one
    for one in OPERATIONS
    if "requestBody" in one.values[2] and one.values[0:2] != ("POST", "/v1/import")  # type: ignore[operator]
]
"""The operations with a body, except the import: its parameter `format` says what the body is, not its type."""

WITHOUT_KEY = {"/healthz", "/readyz"}
FILES = list(dict.fromkeys(one.media_type for one in FILE_FORMATS.values()))
PROBLEM = "application/problem+json"


def url_of(path: str) -> str:
    """The path with some value for each parameter."""
    return re.sub(r"\{.*?\}", "x", path.replace("{tool}", "save_memory"))


def check_problem(operation: Json, answer: httpx.Response) -> None:
    """Check that a problem is documented, and must not be stored."""
    assert answer.status_code >= 400, answer.text
    assert answer.headers["content-type"] == PROBLEM
    assert list(operation["responses"][str(answer.status_code)]["content"]) == [PROBLEM]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_problems_are_documented_as_problems(method: str, path: str, operation: Json) -> None:
    for status, answer in operation["responses"].items():
        if (method, path, status) == ("GET", "/readyz", "503"):
            continue
        documented = [PROBLEM] if status >= "400" else FILES if path.endswith("/export") else ["application/json"]
        assert list(answer.get("content", ())) in (documented, []), status


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
async def test_a_refusal_is_a_problem(
    app: FastAPI, admin: httpx.AsyncClient, method: str, path: str, operation: Json
) -> None:
    async with client_of(app, None) as stranger:
        if path not in WITHOUT_KEY:
            check_problem(operation, await stranger.request(method, url_of(path)))
    unknown = await admin.request(method, url_of(path), json={}, params={"limit": "x"})
    if not unknown.is_success:
        check_problem(operation, unknown)


@pytest.mark.parametrize(("method", "path", "operation"), WITH_BODY)
@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/xml"])
async def test_a_body_of_another_type_is_refused(
    admin: httpx.AsyncClient, method: str, path: str, operation: Json, content_type: str | None
) -> None:
    assert list(operation["requestBody"]["content"]) == ["application/json"]
    headers = {"Content-Type": content_type} if content_type else {}
    answer = await admin.request(method, url_of(path), content=b"{}", headers=headers)
    assert answer.status_code == 422, answer.text
    assert ["body"] in [error["loc"] for error in answer.json()["errors"]]
