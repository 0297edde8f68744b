"""Each error is a problem document with a suitable status."""

import inspect
import logging
import re
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from fastapi import FastAPI

from app.keys.service import create_key
from app.kit import errors
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.errors import AppError
from app.kit.settings import Settings
from app.main import MAX_BODY_BYTES, create_app
from app.problems import Problem, install_handlers
from app.registry import LAYERS
from app.web import errors as connection_errors
from tests.api.path_parameters import SCHEMA
from tests.conftest import NOON, client_of
from tests.talk import Json, append, said, talk

MEMBERS = {"type", "title", "status", "detail", "code", "instance"}


async def test_a_problem_says_what_it_is_to_a_person_and_to_a_program(api: httpx.AsyncClient) -> None:
    for method, path, body, status, code in (
        ("GET", "/v1/chats/c", None, 404, "chat_not_found"),
        ("GET", "/v1/nothing", None, 404, "not_found"),
        ("PATCH", "/v1/chats/c", {}, 405, "method_not_allowed"),
        ("PUT", "/v1/chats/c", {"nope": 1}, 422, "invalid"),
        ("GET", "/v1/keys", None, 403, "forbidden"),
    ):
        problem = _problem(await api.request(method, path, json=body), status)
        assert (problem["code"], problem["instance"]) == (code, path)
        assert problem["title"]
        assert problem["detail"]
        assert ("errors" in problem) == (status == 422)


@pytest.mark.parametrize("path", [*SCHEMA["paths"], "/metrics", "/docs", "/openapi.json"])
async def test_a_405_lists_all_methods_of_the_path(api: httpx.AsyncClient, path: str) -> None:
    url = re.sub(r"\{.*?\}", "x", path)
    answer = await api.request("TRACE", url)
    _problem(answer, 405)
    listed = set(answer.headers["allow"].split(", "))
    assert {method.upper() for method in SCHEMA["paths"].get(path, ["get"])} <= listed
    for method in {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"} | listed:
        assert ((await api.request(method, url)).status_code == 405) == (method not in listed), method


async def test_a_wrong_shape_lists_each_location_in_errors(api: httpx.AsyncClient) -> None:
    body = {"messages": [said(1), {"role": "bot", "content": ""}], "nope": 1}
    problem = _problem(await api.post("/v1/chats/c/messages?limit=1", json=body), 422)
    assert {tuple(error["loc"]) for error in problem["errors"]} == {("body", "messages", 1, "role"), ("body", "nope")}
    assert all(error["msg"] for error in problem["errors"])
    assert problem["detail"].startswith("body.messages.1.role: ")


async def test_at_most_twenty_places_are_listed(api: httpx.AsyncClient) -> None:
    given = {"messages": [{"role": "bot", "content": "x"}] * 101}
    problem = _problem(await api.post("/v1/chats/c/messages", json=given), 422)
    assert [error["loc"][2] for error in problem["errors"]] == list(range(20))
    assert problem["detail"].endswith("; 81 more errors are not listed")
    unknown = {f"x{n}": 1 for n in range(21)}
    problem = _problem(await api.put("/v1/chats/c", json=unknown), 422)
    assert len(problem["errors"]) == 20
    assert problem["detail"].endswith("; 1 more error is not listed")
    await append(api, talk(1, 101))
    other = [said(n, content="Another text.") for n in range(1, 102)]
    taken = await append(api, other, status=409)
    assert [error["id"] for error in taken["errors"]] == [f"m{n}" for n in range(1, 21)]
    assert taken["detail"].endswith("; 81 more errors are not listed")
    called = {"content": "x"} | unknown
    problem = _problem(await api.post("/v1/chats/c/tools/save_memory", json=called), 422)
    assert len(problem["errors"]) == 20


async def test_a_body_full_of_errors_is_not_explained(api: httpx.AsyncClient) -> None:
    body = {f"x{n}": 1 for n in range(10_001)}
    problem = _problem(await api.post("/v1/chats/c/messages", json=body), 422)
    assert problem["errors"] == [{"loc": ["body"], "msg": "has more than 10000 errors; they are not listed"}]


async def test_a_list_inside_a_message_reports_its_first_error(api: httpx.AsyncClient) -> None:
    for name in ("swipes", "tool_calls"):
        body = {"messages": [said(1) | {name: [1] * 60}, said(2) | {name: [1] * 60}]}
        for method in ("POST", "PUT"):
            problem = _problem(await api.request(method, "/v1/chats/c/messages", json=body), 422)
            assert [error["loc"][1:5] for error in problem["errors"]] == [["messages", n, name, 0] for n in (0, 1)]


async def test_a_taken_id_is_named(api: httpx.AsyncClient) -> None:
    await append(api, [said(1)])
    await append(api, [said(1)], "d")
    taken = await append(api, [said(1, content="Another text.")], status=409)
    assert [(error["loc"], error["id"]) for error in taken["errors"]] == [(["body", "messages", 0, "id"], "m1")]
    forked = _problem(await api.post("/v1/chats/c/fork", json={"chat_id": "d"}), 409)
    assert forked["errors"] == [{"loc": ["body", "chat_id"], "msg": "is taken", "id": "d"}]


async def test_a_problem_repeats_nothing_of_what_was_sent(api: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": "my secret", "content": ["my secret"], "metadata": {"a": "my secret" * 2_000}}]}
    problem = await api.post("/v1/chats/c/messages", json=body)
    assert problem.status_code == 422
    assert "my secret" not in problem.text


async def test_without_a_key_the_scheme_is_named(app: FastAPI, key: str) -> None:
    async with client_of(app, None) as nobody, client_of(app, f"{key}x") as stranger:
        for client in (nobody, stranger):
            answer = await client.get("/v1/chats")
            assert _problem(answer, 401)["code"] == "unauthorized"
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_scope_that_is_missing_is_named(app: FastAPI, database: Database, tenant: str) -> None:
    async with database.unit_of_work() as db_session:
        reader = await create_key(db_session, tenant, ["read"], NOON)
    async with client_of(app, reader.text) as client:
        problem = _problem(await client.put("/v1/chats/c", json={}), 403)
    assert "'write'" in problem["detail"]


async def test_a_body_may_have_eight_mebibytes_and_no_byte_more(api: httpx.AsyncClient) -> None:
    assert MAX_BODY_BYTES == 8 * 1024 * 1024
    body = orjson.dumps({"messages": [said(1)]}).ljust(MAX_BODY_BYTES)
    assert (await _send(api, body)).status_code == 201
    assert _problem(await _send(api, body + b" "), 413)["code"] == "too_large"


async def test_a_body_that_grows_too_large_unannounced_is_refused_too(api: httpx.AsyncClient) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(9):
            yield b" " * 1024 * 1024

    assert _problem(await _send(api, parts()), 413)["code"] == "too_large"
    await append(api, [said(1)])


async def test_without_postgresql_errors_have_a_retry_after_header(tmp_path: Path, clock: SteppedClock) -> None:
    url = f"postgresql://memobook@/memobook?host={tmp_path}"
    app = create_app(Settings(database_url=url, _env_file=None), clock=clock)
    async with client_of(app, None) as client:
        for answer in (
            await client.get("/v1/chats/c"),
            await client.get("/v1/chats/c/context"),
            await client.post("/v1/chats/c/messages", json={"messages": [said(1)]}),
        ):
            assert _problem(answer, 503)["code"] == "unavailable"
            assert int(answer.headers["retry-after"]) > 0
    await app.state.database.close()


async def test_an_unexpected_error_is_logged_and_not_exposed(caplog: pytest.LogCaptureFixture) -> None:
    app = FastAPI()
    install_handlers(app)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the secret of the house")

    async with client_of(app, None) as client:
        with caplog.at_level(logging.ERROR):
            answer = await client.get("/broken")
    assert _problem(answer, 500)["code"] == "internal"
    assert answer.headers["Connection"] == "close"
    assert "secret" not in answer.text
    assert "the secret of the house" in caplog.text


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/chats/c/messages"), ("POST", "/v1/chats/c/context"), ("PUT", "/v1/chats/c")]
)
async def test_a_client_that_hangs_up_is_no_failure_of_the_service(
    app: FastAPI, key: str, caplog: pytest.LogCaptureFixture, method: str, path: str
) -> None:
    parts = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])
    answered = []

    async def receive() -> Any:
        return next(parts)

    async def send(message: Any) -> None:
        answered.append(message)

    headers = [(b"authorization", f"Bearer {key}".encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b""}
    with caplog.at_level(logging.INFO):
        await app(scope, receive, send)
    assert answered[0]["status"] < 500
    assert [record for record in caplog.records if record.exc_info or record.levelno > logging.INFO] == []


async def test_a_validation_error_outside_a_request_is_500() -> None:
    app = FastAPI()
    install_handlers(app)

    @app.get("/broken")
    async def broken() -> None:
        Problem.model_validate({})

    async with client_of(app, None) as client:
        assert _problem(await client.get("/broken"), 500)["code"] == "internal"


def test_every_error_is_in_the_tree_at_its_place() -> None:
    assert connection_errors.__name__ == "app.web.errors"  # imported by the server, not by the application
    drawn = re.findall(r"^([│ ]*[├└]── )(\w+)", inspect.getdoc(errors) or "", re.MULTILINE)
    expected = {(depth, error.__name__) for depth, error in _children(AppError, 1) if not _layer_of(error)}
    assert {(len(branch) // 4, name) for branch, name in drawn} == expected


def test_the_errors_of_a_layer_are_in_its_own_errors_module() -> None:
    found = {error: layer for _, error in _children(AppError, 1) if (layer := _layer_of(error))}
    with_errors = {layer.name for layer in LAYERS if find_spec(f"app.{layer.name}.errors")}
    assert with_errors == set(found.values())
    assert {layer.name for layer in LAYERS if layer.routers} <= with_errors, "each layer with routes has errors"
    for error, layer in found.items():
        assert error.__module__ == f"app.{layer}.errors", f"{error.__name__} belongs into app/{layer}/errors.py"
        assert error.__doc__, f"{error.__name__} has no docstring"
    assert "Each memory layer derives its own errors from these in its errors.py" in (inspect.getdoc(errors) or "")


def _children(parent: type[AppError], depth: int) -> Iterator[tuple[int, type[AppError]]]:
    for child in parent.__subclasses__():
        yield depth, child
        yield from _children(child, depth + 1)


def _layer_of(error: type[AppError]) -> str | None:
    """The registered layer in whose package an error is defined."""
    package = error.__module__.split(".")[1]
    return next((layer.name for layer in LAYERS if layer.name == package), None)


async def test_a_client_error_is_logged_in_one_line(api: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="app"):
        await api.get("/v1/chats/c")
    assert [record.getMessage() for record in caplog.records] == ["GET /v1/chats/{chat_id}: chat_not_found"]
    assert caplog.records[0].exc_info is None


def _problem(answer: httpx.Response, status: int) -> Json:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: Json = answer.json()
    Problem.model_validate(problem)
    assert set(problem) - {"errors"} == MEMBERS
    assert (problem["type"], problem["status"]) == ("about:blank", status)
    return problem


async def _send(api: httpx.AsyncClient, body: Any) -> httpx.Response:
    return await api.post("/v1/chats/c/messages", content=body, headers={"Content-Type": "application/json"})


async def test_the_detail_of_an_error_is_in_plain_words(api: httpx.AsyncClient) -> None:
    problem = _problem(
        await api.post("/v1/chats/c/messages", json={"messages": [{"role": "user", "content": ""}]}), 422
    )
    assert "may be empty only when tool_calls is set" in problem["detail"]
    assert "Value error" not in str(problem)
