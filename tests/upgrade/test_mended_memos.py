"""Databases that a former form of a migration left incomplete are mended by the upgrade.

They lack the index of pinned memos, or memos of one line have the same number: a deletion used to lower the number
that the next memo got.
"""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.local.running import Urls
from app.migrate import migrate
from tests.book import book
from tests.conftest import NOON, sqlalchemy_url
from tests.revision_watch import unwatch_revisions
from tests.talk import Json, append, get, ok, put, talk, walk
from tests.upgrade.service import Service, connected, open_service

BEFORE = "c9d4b1725ef0"
"""The revision that the mending migration follows."""

INDEX = "SELECT indexdef FROM pg_indexes WHERE indexname = 'ix_memos_pinned'"

WINDOW = {"history": {"keep_messages": 8, "grow_messages": 0}}


@pytest.fixture
async def database_url(fresh_database_url: str) -> str:
    """A database without any key, whose rows may be changed without raising a revision."""
    await unwatch_revisions(fresh_database_url)
    return fresh_database_url


@pytest.fixture
async def service(database_url: str, servers: Urls) -> AsyncIterator[Service]:
    async with open_service(database_url, servers.redis_url, SteppedClock(NOON), {"default": None}) as opened:
        yield opened


@pytest.fixture
async def api(service: Service) -> httpx.AsyncClient:
    """A client of a chat with six memos, the last by a person, and a checkpoint after the first four."""
    api = service.apis["default"]
    await put(api, settings=WINDOW)
    await append(api, talk(1, 32))
    await service.settle(service.quoter)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "four"}), 201)
    await append(api, talk(33, 40))
    await service.settle(service.quoter)
    ok(await api.post("/v1/chats/c/memos", json={"text": "Kai once had a boat.", "after_seq": 8}), 201)
    return api


async def upgrade(url: str, *damage: str) -> None:
    """Damage a database of the former revision and upgrade it."""
    await asyncio.to_thread(migrate, sqlalchemy_url(url), BEFORE)
    async with connected(url) as connection:
        for statement in damage:
            assert await connection.execute(statement) != "UPDATE 0"
    await asyncio.to_thread(migrate, sqlalchemy_url(url))


def number(old: int, new: int, line: str = "line_status = 'current'") -> str:
    """Give the memo `old` of a line the number `new`."""
    return f"""UPDATE memos SET number = {new} FROM chats c
        WHERE c.chat_key = memos.chat_key AND c.line_id = memos.line_id AND number = {old} AND {line}"""


def by_text(memos: list[Json]) -> dict[str, int]:
    return {memo["text"]: memo["number"] for memo in memos}


async def test_a_missing_index_is_created(database_url: str) -> None:
    async with connected(database_url) as connection:
        whole = await connection.fetchval(INDEX)
        assert whole
        await upgrade(database_url, "DROP INDEX ix_memos_pinned")
        assert await connection.fetchval(INDEX) == whole


async def test_the_upgrade_accepts_an_index_that_exists(database_url: str) -> None:
    async with connected(database_url) as connection:
        whole = await connection.fetchval(INDEX)
        await upgrade(database_url)
        assert await connection.fetchval(INDEX) == whole


async def test_sound_numbers_are_kept(api: httpx.AsyncClient, database_url: str) -> None:
    before = await book(api)
    assert [memo["number"] for memo in before] == [1, 6, 2, 3, 4, 5]
    await upgrade(database_url)
    assert await book(api) == before


async def test_the_oldest_of_equal_numbers_keeps_it(api: httpx.AsyncClient, database_url: str) -> None:
    before = await book(api)
    await upgrade(database_url, number(4, 3), number(5, 3), "UPDATE chats SET memo_number = 6")
    # In story order: 3 was made first; the other two get the next numbers. 6, which a person wrote, has its own.
    assert [memo["number"] for memo in await book(api)] == [1, 6, 2, 3, 7, 8]
    after = await book(api)
    assert [memo | {"number": 0} for memo in after] == [memo | {"number": 0} for memo in before]


async def test_a_visible_memo_keeps_its_number(api: httpx.AsyncClient, database_url: str) -> None:
    *_, third, fourth, _fifth = await book(api)
    ok(await api.delete(f"/v1/chats/c/memos/{third['id']}"), 204)
    await upgrade(database_url, number(4, 3))
    assert by_text(await book(api))[fourth["text"]] == 3
    ok(await api.post(f"/v1/chats/c/memos/{third['id']}/regenerate", json={}), 202)
    assert [memo["number"] for memo in await book(api)] == [1, 6, 2, 7, 3, 5]


async def test_each_line_has_its_own_numbers(api: httpx.AsyncClient, database_url: str) -> None:
    (page,) = await walk(api, "/v1/chats/c/checkpoints")
    kept = "line_status = 'checkpoint'"
    await upgrade(database_url, number(4, 1, kept))
    assert [memo["number"] for memo in await book(api)] == [1, 6, 2, 3, 4, 5]
    frozen = await get(api, "/memos", line=page[0]["line"])
    assert [memo["number"] for memo in frozen["items"]] == [1, 2, 3, 5]


async def test_the_next_memo_gets_a_number_of_its_own(api: httpx.AsyncClient, database_url: str) -> None:
    await upgrade(database_url, "UPDATE chats SET memo_number = 2")
    written = ok(await api.post("/v1/chats/c/memos", json={"text": "Kai sold it."}), 201)
    assert written["number"] == 7
    assert sorted(memo["number"] for memo in await book(api)) == [1, 2, 3, 4, 5, 6, 7]


async def test_a_page_of_the_book_leaves_no_memo_out(api: httpx.AsyncClient, database_url: str) -> None:
    second = ok(await api.post("/v1/chats/c/memos", json={"text": "It was blue.", "after_seq": 8}), 201)
    assert second["number"] == 7
    await upgrade(database_url, number(7, 6))
    pages = await walk(api, "/v1/chats/c/memos", limit=1)
    assert by_text([memo for page in pages for memo in page]) == by_text(await book(api))
    assert len(pages) == 7


async def test_the_window_has_the_new_numbers(api: httpx.AsyncClient, database_url: str) -> None:
    window = """SELECT array_agg((memo ->> 'number')::int ORDER BY nth) FROM chats,
        jsonb_array_elements(context_cache #> '{memos,memos}') WITH ORDINALITY AS w (memo, nth)
        WHERE line_status = 'current'"""
    pinned = window.replace("{memos,memos}", "{memos,pinned}")
    first, *_, fourth, _fifth = await book(api)
    for memo in (first, fourth):
        ok(await api.patch(f"/v1/chats/c/memos/{memo['id']}", json={"pinned": True}), 200)
    async with connected(database_url) as connection:
        assert await connection.fetchval(window) == [6, 2, 3]
        assert await connection.fetchval(pinned) == [1, 4]
        await upgrade(database_url, number(4, 1), number(3, 2))
        assert await connection.fetchval(window) == [6, 2, 7]
        assert await connection.fetchval(pinned) == [1, 8]
        # A change of settings writes the window from the memos themselves.
        await put(api, status=200, settings={"context_tokens": 31_000})
        assert await connection.fetchval(window) == [6, 2, 7]
        assert await connection.fetchval(pinned) == [1, 8]
