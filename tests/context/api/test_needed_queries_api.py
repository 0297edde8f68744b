"""A context sends the queries of layers that most chats do not need only for the chats that need them."""

from collections.abc import Awaitable, Callable
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI

from app.context.in_use import in_use
from app.context.queries import write_statement
from app.kit.db import Database
from tests.blocks.asking import put_block
from tests.facts.asking import USER, begin, note, set_fact
from tests.memories.asking import write
from tests.statements import watched
from tests.talk import CHAT, Json, append, context, cut_off, put, talk

BRIEF = "Tomas is a ferryman."
SCOPES = {"chat": CHAT, "character": f"{USER}/characters/Kai", "user": USER, "global": "/v1"}


async def set_the_fact(api: httpx.AsyncClient, under: str) -> None:
    await set_fact(api, "brother", BRIEF, under=under)


async def put_the_block(api: httpx.AsyncClient, under: str) -> None:
    await put_block(api, BRIEF, under=under)


async def write_the_memory(api: httpx.AsyncClient, under: str) -> None:
    await write(api, BRIEF, under=under, importance=0.8)


WRITERS = {"fact": set_the_fact, "block": put_the_block, "memory": write_the_memory}


async def ask(app: FastAPI, api: httpx.AsyncClient) -> tuple[Json, list[str]]:
    """The context, and the statements that it took."""
    async with watched(app.state.database) as statements:
        found = await context(api)
    return found, statements.asked


def knows(found: Json) -> bool:
    return any(BRIEF in segment["text"] for segment in found["segments"])


async def test_queries_that_a_chat_does_not_need_are_skipped(app: FastAPI, api: httpx.AsyncClient) -> None:
    await begin(api)
    await begin(api, "other")
    await append(api, talk(1, 2))
    await set_fact(api, "brother", BRIEF, under="/v1/chats/other")
    await set_fact(api, "brother", BRIEF, under="/v1/users/another")
    _, (statement,) = await ask(app, api)
    assert "FROM messages" in statement
    assert "teachings" not in statement


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kind", WRITERS)
async def test_new_knowledge_is_in_the_next_context(
    app: FastAPI, api: httpx.AsyncClient, kind: str, scope: str
) -> None:
    await begin(api)
    await append(api, talk(1, 2))
    assert not knows((await ask(app, api))[0])
    write_it: Callable[[httpx.AsyncClient, str], Awaitable[None]] = WRITERS[kind]
    await write_it(api, SCOPES[scope])
    found, asked = await ask(app, api)
    assert (knows(found), len(asked)) == (True, 2)
    again, (statement,) = await ask(app, api)
    assert (again, "teachings" in statement) == (found, False)


async def test_a_query_is_skipped_once_it_is_no_longer_needed(app: FastAPI, api: httpx.AsyncClient) -> None:
    await begin(api)
    await append(api, talk(1, 3))
    await note(api, "brother", BRIEF)
    await append(api, talk(4, 4))
    for expected in (2, 1, 1):
        found, asked = await ask(app, api)
        assert (knows(found), len(asked)) == (True, expected)
    await cut_off(api, 4)
    found, (statement,) = await ask(app, api)
    assert (knows(found), "teachings" in statement) == (False, False)


async def test_a_new_user_of_a_chat_adds_their_knowledge(app: FastAPI, api: httpx.AsyncClient) -> None:
    await put(api, user_id="nell")
    await append(api, talk(1, 2))
    await set_fact(api, "brother", BRIEF, under=USER)
    assert not knows((await ask(app, api))[0])
    await put(api, status=200, user_id="mira")
    assert knows((await ask(app, api))[0])


async def test_a_chat_without_a_user_is_asked_once(app: FastAPI, api: httpx.AsyncClient) -> None:
    await put(api)
    await append(api, talk(1, 2))
    await set_fact(api, "brother", BRIEF, under=USER)
    found, asked = await ask(app, api)
    assert (knows(found), len(asked)) == (False, 1)


@pytest.mark.parametrize("before", [False, True])
async def test_former_memories_are_planned_only_with_before(database: Database, before: bool) -> None:
    queries = (in_use().queries if before else in_use().least_queries) or {}
    statement = write_statement(tuple(queries.items()), of_current=True, before=before)
    given = (uuid4(), uuid4(), None, *(["m1"] if before else []))
    async with database.raw() as connection:
        plan = str(await connection.fetchval(f"EXPLAIN (FORMAT json) {statement}", *given))
    assert "messages" in plan
    assert [table in plan for table in ("diary_entries", "narrative_versions")] == [before, before]
