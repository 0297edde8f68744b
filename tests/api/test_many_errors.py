"""Every operation refuses a body with very many errors as a whole, because explaining them takes time and memory."""

import re

import httpx
import pytest

from app.kit.validation_errors import MAX_EXPLAINED_ERRORS
from tests.api.path_parameters import SCHEMA
from tests.talk import ok

MANY = MAX_EXPLAINED_ERRORS + 1
SOME_ID = "01a1fd8d-0000-7000-8000-000000000000"
VALUES = {"tool": "save_memory"}
UNKNOWN = {f"unknown-{n}": n for n in range(MANY)}

BODIES = {
    f"{method.upper()} {path}": operation["requestBody"]
    for path, methods in SCHEMA["paths"].items()
    for method, operation in methods.items()
    if "application/json" in operation.get("requestBody", {}).get("content", {}) and path != "/v1/keys"
}


@pytest.mark.parametrize("operation", sorted(BODIES))
async def test_many_wrong_fields_are_one_error(api: httpx.AsyncClient, operation: str) -> None:
    method, path = operation.split()
    url = re.sub(r"{(\w+)}", lambda found: VALUES.get(found[1], SOME_ID), path)
    problem = ok(await api.request(method, url, json=UNKNOWN), 422)
    assert "are not listed" in problem["detail"]
    assert len(problem["errors"]) == 1
