"""What auto-hide may no longer hide is in the very next context, also while no worker runs."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import product
from uuid import UUID

import httpx
import pytest

from app.chats.heads import lock_line, read_head
from app.chats.settings import effective
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.scenes.hide_job import find_last_hidden, read_sight, show_again
from tests.background import settle_rounds
from tests.plans import count_rows, fetch_plan
from tests.scenes.story import BY_HAND, set_break, story_model
from tests.scripted_model import ScriptedModel
from tests.statements import clear_statistics, watched
from tests.talk import Json, append, cut_off, hide, ok, put, reimport, said, soft_delete, talk
from tests.words import numbers

Change = Callable[[httpx.AsyncClient], Awaitable[str]]
"""Takes messages away; returns the id of the chat to look at."""


async def begin_four_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, *, at_once: bool = False
) -> None:
    """Four scenes of 20 messages, of which the first two are hidden; folded scene by scene, or at once."""
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    for last in (20, 40, 60, 80):
        await append(api, talk(last - 19, last))
        await set_break(api, last)
        if not at_once:
            await settle_rounds(dispatcher, clock)
    await settle_rounds(dispatcher, clock)
    assert await sight(api, "c") == (41, 40, numbers(1, 40))


async def sight(api: httpx.AsyncClient, chat_id: str) -> tuple[int, int, list[int]]:
    """Where the history begins, how many messages it has, and what auto-hide hides."""
    history = ok(await api.get(f"/v1/chats/{chat_id}/context"), 200)["history"]
    items = ok(await api.get(f"/v1/chats/{chat_id}/messages", params={"limit": 500}), 200)["items"]
    return (
        history["anchor_seq"],
        history["messages"],
        [message["seq"] for message in items if message["hidden_by"] == "scenes"],
    )


def cuts(from_seq: int) -> Change:
    async def change(api: httpx.AsyncClient) -> str:
        await cut_off(api, from_seq)
        return "c"

    return change


async def deletes(api: httpx.AsyncClient) -> str:
    await soft_delete(api, *(f"m{n}" for n in range(80, 44, -1)))
    return "c"


async def hides(api: httpx.AsyncClient) -> str:
    await hide(api, (45, 80))
    return "c"


async def forks(api: httpx.AsyncClient) -> str:
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 44}), 201)
    return "d"


async def imports(api: httpx.AsyncClient) -> str:
    await reimport(api, talk(1, 44))
    return "c"


async def imports_without_ids(api: httpx.AsyncClient) -> str:
    wanted = [{name: value for name, value in one.items() if name != "id"} for one in talk(1, 44)]
    await reimport(api, wanted)
    return "c"


async def restores(api: httpx.AsyncClient) -> str:
    await cut_off(api, 45)
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "short"}), 201)
    await append(api, talk(101, 140))
    ok(await api.post("/v1/chats/c/checkpoints/short/restore"), 201)
    return "c"


@pytest.mark.parametrize(
    "change", [cuts(45), deletes, hides, forks, imports, imports_without_ids, restores], ids=lambda one: one.__name__
)
async def test_the_next_context_has_the_kept_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, change: Change
) -> None:
    await begin_four_scenes(api, dispatcher, clock, model)
    chat_id = await change(api)
    found = await sight(api, chat_id)
    assert found == (21, 24, numbers(1, 20))
    last_cut = ok(await api.get(f"/v1/chats/{chat_id}/context"), 200)["history"]["last_cut"]
    assert (last_cut["at_seq"], last_cut["reason"]) == (21, "rewind")
    await settle_rounds(dispatcher, clock)
    assert await sight(api, chat_id) == found


@pytest.mark.parametrize(("from_seq", "messages"), [(45, 25), (42, 22), (41, 21), (37, 37)])
async def test_a_reply_made_anew_remembers_the_scene(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    from_seq: int,
    messages: int,
) -> None:
    await begin_four_scenes(api, dispatcher, clock, model)
    await cut_off(api, from_seq)
    body: Json = {"messages": [said(101)], "context": {"format": "openai"}}
    answer = ok(await api.post("/v1/chats/c/messages", json=body), 201)["context"]
    assert answer["history"]["messages"] == messages
    await settle_rounds(dispatcher, clock)
    after = ok(await api.get("/v1/chats/c/context", params={"format": "openai"}), 200)
    assert (after["history"]["messages"], after["prefix_hash"]) == (messages, answer["prefix_hash"])


async def test_a_scene_that_lost_its_recap_is_shown_too(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin_four_scenes(api, dispatcher, clock, model, at_once=True)
    await cut_off(api, 45)
    assert await sight(api, "c") == (21, 24, [])
    await settle_rounds(dispatcher, clock)
    assert await sight(api, "c") == (21, 24, numbers(1, 20))


async def test_hiding_is_left_to_the_job(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin_four_scenes(api, dispatcher, clock, model)
    await append(api, talk(81, 82))
    await cut_off(api, 82)
    assert await sight(api, "c") == (61, 21, numbers(1, 40))
    await settle_rounds(dispatcher, clock)
    assert await sight(api, "c") == (61, 21, numbers(1, 60))


async def line_of(database: Database, tenant: str) -> tuple[UUID, UUID]:
    """The key and the current line of the chat `c`."""
    key = chat_key(tenant, "c")
    async with database.raw() as connection:
        return key, await connection.fetchval(
            "SELECT line_id FROM chats WHERE chat_key = $1 AND line_status = 'current'", key
        )


async def begin_many_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, *, scenes: int
) -> None:
    """Scenes of two messages each, of which all but the newest eight are hidden."""
    model.otherwise = story_model()
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 2 * scenes))
    for last in range(2, 2 * scenes + 1, 2):
        await set_break(api, last)
    await settle_rounds(dispatcher, clock)
    assert (await sight(api, "c"))[2] == numbers(1, 2 * scenes - 16)


async def test_of_many_scenes_only_the_last_are_read(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    await begin_many_scenes(api, dispatcher, clock, model, scenes=60)
    found = await sight(api, "c")
    line = await line_of(database, tenant)
    async with watched(database) as seen, database.unit_of_work() as db_session:
        head = await lock_line(db_session, *line)
        assert head is not None
        await show_again(db_session, head, now=clock())
    queries = [one for one in seen.logged if "FROM scenes" in one.query]
    async with database.raw() as connection:
        await clear_statistics(connection, "scenes")
        plans = [await fetch_plan(connection, one.query, *one.args) for one in queries]
    assert queries
    assert sum(count_rows(plan, "scenes") for plan in plans) < 10
    assert await sight(api, "c") == found


async def test_it_shows_what_the_job_would_show_at_the_end(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    await begin_many_scenes(api, dispatcher, clock, model, scenes=16)
    line = await line_of(database, tenant)
    stale = "UPDATE scenes SET source_hash = 'x' WHERE chat_key = $1 AND last_seq = ANY($2)"
    found = set()
    for has_open, stale_seqs in product((False, True), ([], [12], [4, 6, 12, 20, 22])):
        if has_open and not stale_seqs:
            await append(api, talk(33, 33))
        async with database.unit_of_work() as db_session:
            await db_session.raw.execute("SAVEPOINT unchanged")
            await db_session.raw.execute(stale, line[0], stale_seqs)
            head = await read_head(db_session, *line)
            assert head is not None
            for auto_hide, keep_messages in product((None, -1, 0, 1, 2, 5, 15, 16, 17, 50), (1, 4, 20, 31, 40)):
                settings = {"auto_hide": auto_hide, "detect": False}
                history = {"keep_messages": keep_messages, "max_messages": 100}
                chosen = effective({"preset": "scenes", "scenes": settings, "history": history})
                other = replace(head, settings=chosen)
                hidden = (await read_sight(db_session, other)).hidden
                last_seq = await find_last_hidden(db_session, other)
                assert last_seq == (hidden[-1][1] if hidden else 0)
                found.add(last_seq)
            await db_session.raw.execute("ROLLBACK TO unchanged")
    assert len(found) > 8
