"""Sessions over HTTP: when they begin, what lists show, and what lines, forks and re-imports do to them."""

import asyncio
from itertools import pairwise
from typing import Any

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.conftest import NOON
from tests.slowness import SLOWNESS
from tests.statements import watched
from tests.talk import Json, append, cut_off, get, ok, put, said, soft_delete, talk, walk


async def listed(api: httpx.AsyncClient, chat_id: str = "c", **query: Any) -> list[Json]:
    """All sessions of a chat."""
    return [item for page in await walk(api, f"/v1/chats/{chat_id}/sessions", **query) for item in page]


async def begins(api: httpx.AsyncClient, chat_id: str = "c", **query: Any) -> list[tuple[int, str]]:
    """Where each session begins, and why. Checks that the sessions follow each other without a gap."""
    items = await listed(api, chat_id, **query)
    assert [item["number"] for item in items] == list(range(1, len(items) + 1))
    for one, following in pairwise(items):
        assert (one["last_seq"], one["ended_at"]) == (following["first_seq"] - 1, following["began_at"])
    assert (items[-1]["last_seq"], items[-1]["ended_at"]) == (None, None)
    assert len({item["id"] for item in items}) == len(items)
    return [(item["first_seq"], item["reason"]) for item in items]


async def end(api: httpx.AsyncClient, status: int = 201, chat_id: str = "c") -> Json:
    """End the open session."""
    return ok(await api.post(f"/v1/chats/{chat_id}/sessions/break"), status)


# --- by hand ---


async def test_without_breaks_a_chat_is_one_session(api: httpx.AsyncClient) -> None:
    await put(api)
    (empty,) = await listed(api)
    assert empty == {
        "id": empty["id"],
        "number": 1,
        "first_seq": 1,
        "last_seq": None,
        "reason": "first",
        "messages": 0,
        "began_at": "2026-04-01T12:00:00Z",
        "ended_at": None,
    }
    await append(api, talk(1, 3))
    assert await listed(api) == [empty | {"messages": 3}]
    assert await get(api, "/sessions/1") == empty | {"messages": 3}


async def test_a_break_by_hand_begins_a_session(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await append(api, talk(1, 3))
    (first,) = await listed(api)
    clock.step(60)
    begun = await end(api)
    assert (begun["number"], begun["first_seq"], begun["reason"], begun["messages"]) == (2, 4, "manual", 0)
    assert begun["began_at"] == "2026-04-01T12:01:00Z"
    assert await get(api, "/sessions/2") == begun
    ended = {"last_seq": 3, "ended_at": begun["began_at"], "messages": 3}
    assert await listed(api) == [first | ended, begun]
    await append(api, talk(4, 5))
    assert await get(api, "/sessions/2") == begun | {"messages": 2}


async def test_a_session_without_messages_does_not_end(api: httpx.AsyncClient) -> None:
    await put(api)
    assert (await end(api, 200))["number"] == 1
    await append(api, talk(1, 2))
    begun = await end(api)
    revision = (await api.get("/v1/chats/c")).headers["ETag"]
    assert await end(api, 200) == begun
    assert (await api.get("/v1/chats/c")).headers["ETag"] == revision
    await append(api, talk(3, 3))
    await soft_delete(api, "m3")
    assert await end(api, 200) == begun
    assert await begins(api) == [(1, "first"), (3, "manual")]


@pytest.mark.parametrize("by_cut", [True, False])
async def test_the_first_session_without_messages_does_not_end(api: httpx.AsyncClient, by_cut: bool) -> None:
    await append(api, talk(1, 2))
    await (cut_off(api, 1) if by_cut else soft_delete(api, "m1", "m2"))
    assert (await end(api, 200))["number"] == 1
    assert await begins(api) == [(1, "first")]


@pytest.mark.parametrize("by_cut", [True, False])
async def test_a_pause_ends_no_first_session_without_messages(
    api: httpx.AsyncClient, clock: SteppedClock, by_cut: bool
) -> None:
    await put(api, settings={"sessions": {"idle_timeout_s": 600}})
    await append(api, talk(1, 2))
    await (cut_off(api, 1) if by_cut else soft_delete(api, "m1", "m2"))
    clock.step(600)
    await append(api, talk(3, 3))
    assert await begins(api) == [(1, "first")]


async def test_unknown_sessions_and_chats_are_404(api: httpx.AsyncClient) -> None:
    assert ok(await api.post("/v1/chats/nowhere/sessions/break"), 404)["code"] == "chat_not_found"
    assert ok(await api.get("/v1/chats/nowhere/sessions"), 404)["code"] == "chat_not_found"
    await append(api, talk(1, 2))
    assert (await get(api, "/sessions/2", 404))["code"] == "session_not_found"
    await end(api)
    assert (await get(api, "/sessions/3", 404))["code"] == "session_not_found"
    await get(api, "/sessions/0", 422)


async def test_long_lists_have_pages(api: httpx.AsyncClient) -> None:
    await put(api, settings={"sessions": {"max_turns": 1}})
    await append(api, talk(1, 14))
    whole = await listed(api)
    assert len(whole) == 7
    pages = await walk(api, "/v1/chats/c/sessions", limit=3)
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [item for page in pages for item in page] == whole


# --- by themselves ---


async def test_silence_ends_a_session(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api, settings={"sessions": {"idle_timeout_s": 600}})
    clock.step(10_000)
    await append(api, talk(1, 2))
    clock.step(599)
    await append(api, talk(3, 4))
    clock.step(600)
    await append(api, talk(5, 6))
    assert await begins(api) == [(1, "first"), (5, "idle")]
    assert [item["messages"] for item in await listed(api)] == [4, 2]


async def test_a_reset_hour_ends_a_session_once(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api, time_zone="Asia/Tokyo", settings={"sessions": {"daily_reset_hour": 0}})  # it is 21:00 there
    await append(api, talk(1, 2))
    clock.step(3 * 3600 - 1)
    await append(api, talk(3, 3))
    clock.step(1)
    await append(api, talk(4, 5))
    clock.step(5 * 86_400)
    await append(api, talk(6, 6))
    assert await begins(api) == [(1, "first"), (4, "daily"), (6, "daily")]


async def test_enough_turns_end_a_session_within_an_append_too(api: httpx.AsyncClient) -> None:
    await put(api, settings={"sessions": {"max_turns": 2}})
    await append(api, talk(1, 3))
    await append(api, talk(4, 4))
    assert await begins(api) == [(1, "first")]
    await append(api, talk(5, 13))
    assert await begins(api) == [(1, "first"), (5, "turns"), (9, "turns"), (13, "turns")]


async def test_deleted_turns_do_not_count(api: httpx.AsyncClient) -> None:
    await put(api, settings={"sessions": {"max_turns": 2}})
    await append(api, talk(1, 6))
    await soft_delete(api, "m2", "m3", "m5", "m6")
    await append(api, talk(7, 11))
    assert await begins(api) == [(1, "first"), (5, "turns"), (11, "turns")]


@pytest.mark.parametrize("change", [{"kind": "thought"}, {"role": "narrator"}])
async def test_a_message_that_stops_being_a_reply_ends_no_turn(api: httpx.AsyncClient, change: Json) -> None:
    await put(api, settings={"sessions": {"max_turns": 2}})
    await append(api, talk(1, 4))
    ok(await api.put("/v1/chats/c/messages", json={"messages": [*talk(1, 3), said(4) | change]}), 200)
    await append(api, talk(5, 6))
    assert await begins(api) == [(1, "first")]
    await append(api, talk(7, 7))
    assert await begins(api) == [(1, "first"), (7, "turns")]


async def test_turns_before_the_setting_count(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    await put(api, status=200, settings={"sessions": {"max_turns": 2}})
    await append(api, talk(5, 5))
    assert await begins(api) == [(1, "first"), (5, "turns")]
    await put(api, status=200, settings={"sessions": {"max_turns": None}})
    await append(api, talk(6, 10))
    await put(api, status=200, settings={"sessions": {"max_turns": 2}})
    await append(api, talk(11, 11))
    assert await begins(api) == [(1, "first"), (5, "turns"), (11, "turns")]


async def test_sessions_can_be_switched_off(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    settings = {"enabled": False, "idle_timeout_s": 1, "daily_reset_hour": 1, "max_turns": 1}
    await put(api, settings={"sessions": settings})
    await append(api, talk(1, 4))
    clock.step(100_000)
    await append(api, talk(5, 6))
    assert await begins(api) == [(1, "first")]
    await end(api)
    await put(api, status=200, settings={"sessions": {"enabled": None}})
    assert (await get(api, ""))["settings"]["sessions"]["enabled"] is True
    clock.step(1)
    await append(api, talk(7, 7))
    clock.step(1)
    await append(api, talk(8, 8))
    assert await begins(api) == [(1, "first"), (7, "manual"), (8, "idle")]


async def test_a_retry_ends_no_session(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api, settings={"sessions": {"idle_timeout_s": 600}})
    await append(api, talk(1, 2))
    clock.step(600)
    await append(api, talk(1, 2), status=200)
    assert await begins(api) == [(1, "first")]


# --- what it costs ---


@pytest.mark.parametrize(
    ("settings", "pause_s", "more"),
    [
        ({}, 0, 0),
        ({"idle_timeout_s": 600, "daily_reset_hour": 4, "max_turns": 100}, 1, 0),
        ({"idle_timeout_s": 200, "daily_reset_hour": 4, "max_turns": 100}, 200, 1),
    ],
    ids=["off", "without a break", "with a break"],
)
async def test_an_append_costs_one_statement_more_at_a_break(
    api: httpx.AsyncClient, app: Any, clock: SteppedClock, settings: Json, pause_s: int, more: int
) -> None:
    database: Database = app.state.database
    await put(api, settings={"memos": {"enabled": False}, "sessions": settings})
    await append(api, talk(1, 4))
    clock.step(pause_s)
    async with watched(database) as seen:
        await append(api, talk(5, 5))
    asked = [text for text in seen.asked if "FROM keys" not in text]  # keys are read again after a while
    assert len(asked) == 3 + more, asked
    assert len(await listed(api)) == 1 + more


# --- what happens to the line ---


async def test_a_cut_off_end_reopens_a_session(api: httpx.AsyncClient) -> None:
    await put(api, settings={"sessions": {"max_turns": 1}})
    await append(api, talk(1, 7))
    assert await begins(api) == [(1, "first"), (3, "turns"), (5, "turns"), (7, "turns")]
    ids = [item["id"] for item in await listed(api)]
    await cut_off(api, 4)
    assert await begins(api) == [(1, "first"), (3, "turns")]
    assert [item["messages"] for item in await listed(api)] == [2, 1]
    assert [item["id"] for item in await listed(api)] == ids[:2]
    await append(api, talk(8, 9))
    assert await begins(api) == [(1, "first"), (3, "turns"), (9, "turns")]
    await cut_off(api, 1)
    assert await begins(api) == [(1, "first")]
    assert [item["id"] for item in await listed(api)] == ids[:1]
    await end(api, 200)


async def test_a_fork_has_the_sessions_up_to_its_end(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    await end(api)
    await append(api, talk(5, 6))
    await end(api)
    for fork, at_seq, expected in (
        ("whole", None, [(1, "first"), (5, "manual"), (7, "manual")]),
        ("middle", 5, [(1, "first"), (5, "manual")]),
        ("early", 2, [(1, "first")]),
    ):
        ok(await api.post("/v1/chats/c/fork", json={"chat_id": fork, "at_seq": at_seq}), 201)
        assert await begins(api, fork) == expected
        copied = [item["id"] for item in await listed(api, fork)]
        assert copied == [item["id"] for item in await listed(api)][: len(expected)]
        await append(api, [said(99)], fork)
        assert (await end(api, chat_id=fork))["number"] == len(expected) + 1
    assert await begins(api) == [(1, "first"), (5, "manual"), (7, "manual")]


async def test_a_restored_line_has_the_sessions_of_its_checkpoint(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    former = (await get(api, ""))["line"]
    await end(api)
    checkpoint = ok(await api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}), 201)
    before = await listed(api)
    await append(api, talk(3, 4))
    await end(api)
    ok(await api.post("/v1/chats/c/checkpoints/dusk/restore"), 201)
    assert await listed(api) == before == await listed(api, line=checkpoint["line"])
    assert await begins(api, line=former) == [(1, "first"), (3, "manual"), (5, "manual")]
    assert (await get(api, "/sessions/3", line=former))["first_seq"] == 5
    assert await end(api, 200) == before[-1]


async def test_a_reimport_onto_a_new_line_moves_sessions(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    await end(api)
    await append(api, talk(5, 6))
    await end(api)
    await append(api, talk(7, 8))
    await end(api)
    ids = [item["id"] for item in await listed(api)]
    former = (await get(api, ""))["line"]
    given = [*talk(1, 2), said(20), *talk(3, 4), said(21), *talk(7, 8), said(9)]
    reimported = ok(await api.put("/v1/chats/c/messages", json={"messages": given}), 200)
    assert reimported["line"] != former
    assert await begins(api) == [(1, "first"), (6, "manual"), (9, "manual")]
    items = await listed(api)
    assert [item["messages"] for item in items] == [5, 3, 1]
    assert [item["id"] for item in items] == [ids[0], ids[2], ids[3]]
    assert len(await listed(api, line=former)) == 4


async def test_a_reimport_keeps_the_first_session(api: httpx.AsyncClient) -> None:
    """Also if no message keeps its seq."""
    await append(api, talk(1, 2))
    await end(api)
    await append(api, talk(3, 4))
    former = await listed(api)
    ok(await api.put("/v1/chats/c/messages", json={"messages": [said(20), *talk(1, 4)]}), 200)
    assert await begins(api) == [(1, "first"), (4, "manual")]
    kept = [(item["id"], item["began_at"]) for item in await listed(api)]
    assert kept == [(item["id"], item["began_at"]) for item in former]


@pytest.mark.parametrize("inserted", [[], [said(20)]], ids=["in place", "new line"])
async def test_messages_added_by_a_reimport_can_begin_a_session(
    api: httpx.AsyncClient, clock: SteppedClock, inserted: list[Json]
) -> None:
    await put(api, settings={"sessions": {"idle_timeout_s": 600, "max_turns": 3}})
    await append(api, talk(1, 3))
    clock.step(600)
    given = [*talk(1, 2), *inserted, *talk(3, 3), *talk(4, 7)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": given}), 200)
    seq = 4 + len(inserted)
    assert await begins(api) == [(1, "first"), (seq, "idle")]
    await append(api, talk(8, 9))
    assert await begins(api) == [(1, "first"), (seq, "idle"), (seq + 5, "turns")]


async def test_a_pause_ends_no_session_without_messages(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api, settings={"sessions": {"idle_timeout_s": 600}})
    await append(api, talk(1, 2))
    clock.step(600)
    await append(api, talk(3, 3))
    await soft_delete(api, "m3")
    clock.step(600)
    await append(api, talk(4, 4))
    assert await begins(api) == [(1, "first"), (3, "idle")]
    clock.step(600)
    await append(api, talk(5, 5))
    assert await begins(api) == [(1, "first"), (3, "idle"), (5, "idle")]


async def test_a_break_by_hand_beside_appends_leaves_no_gap(api: httpx.AsyncClient) -> None:
    async def send(path: str, **body: Any) -> httpx.Response:
        """Send a request, and again if it waits in vain for its turn: a slow machine needs more than 3 s for all."""
        async with asyncio.timeout(60 * SLOWNESS):
            while (answer := await api.post(f"/v1/chats/c{path}", **body)).status_code == 503:
                assert SLOWNESS > 1
        return answer

    await put(api, settings={"sessions": {"max_turns": 2}})
    async with asyncio.TaskGroup() as group:
        appends, breaks = [], []
        for n in range(1, 41, 4):
            appends.append(group.create_task(send("/messages", json={"messages": talk(n, n + 3)})))
            breaks.append(group.create_task(send("/sessions/break")))
    assert {task.result().status_code for task in appends} == {201}
    assert {task.result().status_code for task in breaks} <= {200, 201}
    found = await begins(api)
    seqs = [first_seq for first_seq, _ in found]
    assert seqs == sorted(set(seqs))
    assert sum(item["messages"] for item in await listed(api)) == 40
    assert all(item["messages"] for item in (await listed(api))[:-1])


async def test_the_id_of_a_first_session_is_stored(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    """A fork keeps it, because rows of other layers can refer to it."""
    await put(api, settings={"sessions": {"max_turns": 9}})
    await append(api, talk(1, 2))
    (first,) = await listed(api)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d"}), 201)
    assert [item["id"] for item in await listed(api, "d")] == [first["id"]]
    async with database.raw() as raw:
        rows = await raw.fetchval("SELECT count(*) FROM sessions WHERE chat_key = $1", chat_key(tenant, "c"))
    assert rows == 0
    assert NOON.isoformat() in first["began_at"].replace("Z", "+00:00")


async def test_a_reply_whose_question_is_deleted_is_no_turn(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    """The question can be in the session before."""
    await put(api, settings={"sessions": {"max_turns": 1, "idle_timeout_s": 600}})
    await append(api, talk(1, 1))
    clock.step(600)
    await append(api, talk(2, 2))
    await soft_delete(api, "m1")
    await append(api, talk(3, 4))
    assert await begins(api) == [(1, "first"), (2, "idle")]
    await append(api, talk(5, 5))
    assert await begins(api) == [(1, "first"), (2, "idle"), (5, "turns")]
