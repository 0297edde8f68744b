"""Log lines are JSON, and contain ids but nothing that a person wrote."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import httpx
import orjson
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Connection
from app.kit.errors import NotFound
from app.kit.log.fields import set_fields
from app.kit.log.formatter import JsonFormatter, OneTraceback, describe
from tests.conftest import client_of
from tests.talk import append, ok, talk

SECRET = "the letter under the stairs"


@contextmanager
def written(logger: str = "app", level: int = logging.INFO) -> Iterator[list[dict[str, Any]]]:
    """What is logged within the block, as the service writes it."""
    stream, lines = io.StringIO(), list[dict[str, Any]]()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    found = logging.getLogger(logger)
    former = found.level
    found.addHandler(handler)
    found.setLevel(level)
    try:
        yield lines
    finally:
        found.removeHandler(handler)
        found.setLevel(former)
        lines += [orjson.loads(line) for line in stream.getvalue().splitlines()]


async def test_a_line_has_the_fields_of_its_task() -> None:
    set_fields(request="r1")
    with written() as lines:
        logging.getLogger("app.x").info("hello %s", "there", extra={"fields": {"work": ["w1"]}})
    (line,) = lines
    assert line.pop("time").endswith("+00:00")
    assert line == {"level": "info", "logger": "app.x", "message": "hello there", "request": "r1", "work": ["w1"]}


async def test_errors_are_logged_without_their_words(connection: Connection) -> None:
    with written() as lines:
        try:
            try:
                await connection.execute("SELECT ($1::text)::int", SECRET)
            except asyncpg.PostgresError as error:
                raise ValueError(SECRET) from error
        except ValueError:
            logging.getLogger("app.x").exception("it failed")
    (line,) = lines
    assert line["error"] == ["ValueError", "InvalidTextRepresentationError (22P02)"]
    assert any("test_log.py" in frame for frame in line["traceback"])
    assert SECRET not in str(lines)
    assert describe(NotFound("There is no chat 'kai'.")) == "NotFound: not_found"


async def test_a_message_is_joined_to_its_memo(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    with written() as lines:
        sent = await api.post(
            "/v1/chats/c/messages",
            json={"messages": talk(1, 8)},
            headers={"X-Request-Id": "append-1"},
        )
        ok(sent, 201)
        clock.step(10)
        await dispatcher.drain()
    assert sent.headers.get_list("x-request-id") == ["append-1"]
    (scheduled,) = [line for line in lines if line["message"] == "scheduled memos"]
    assert scheduled["request"] == "append-1"
    (made,) = [line for line in lines if line["message"] == "finished memos"]
    assert [made["work"]] == scheduled["work"]
    assert "request" not in made
    assert "lamp number" not in str(lines)


@pytest.mark.parametrize("given", ["", "two words", "x" * 65, "é"])
async def test_an_id_that_could_harm_a_log_is_replaced(api: httpx.AsyncClient, given: str) -> None:
    answers = [await api.get("/v1/presets", headers={b"X-Request-Id": given.encode()}) for _ in range(2)]
    ids = {answer.headers["x-request-id"] for answer in answers}
    assert len(ids) == 2
    assert given not in ids


async def test_users_are_not_in_the_log(api: httpx.AsyncClient) -> None:
    with written() as lines:
        await append(api, talk(1, 1), "kai")
        ok(await api.get("/v1/chats/mira-and-kai"), 404)
        ok(await api.get("/v1/nothing/mira-and-kai"), 404)
        ok(await api.delete("/v1/users/mira-and-kai"), 204)
    assert "GET /v1/chats/{chat_id}: chat_not_found" in [line["message"] for line in lines]
    assert "mira-and-kai" not in str(lines)


async def test_an_unexpected_error_has_one_traceback_and_an_id(app: FastAPI, key: str) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError(SECRET)

    with written() as lines:
        async with client_of(app, key) as client:
            answer = await client.get("/broken", headers={"X-Request-Id": "broken-1"})
    assert ok(answer, 500)["code"] == "internal"
    assert answer.headers["x-request-id"] == "broken-1"
    (line,) = [line for line in lines if "traceback" in line]
    assert (line["message"], line["request"]) == ("GET /broken failed", "broken-1")
    assert SECRET not in str(lines)
    again = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "again", (), (RuntimeError, RuntimeError(), None))
    assert not OneTraceback().filter(again)
