"""What follows when a layer ends a session in an append: the layers learn of it, and the history is cut or waits."""

from collections.abc import Iterator, Sequence
from typing import ClassVar
from uuid import UUID

import httpx
import pytest

from app.chats.events import MessagesAppended, SessionBroken
from app.chats.settings import LayerSettings
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import DbSession
from app.layers.layer import Layer
from app.registry import registered
from tests.background import settle
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import Json, append, context, cut_off, get, ok, put, read_cut, said, soft_delete, talk

ENDS = "It is late."
"""A message that begins with it begins a session."""


class EnderSettings(LayerSettings):
    """Nothing is set."""

    section: ClassVar[str] = "ender"


Ended = list[tuple[int, int, int]]


@pytest.fixture
def ended() -> Ended:
    """(first seq, last seq, newest seq of the line then) of each session that ended."""
    return []


@pytest.fixture
def layers(ended: Ended) -> Iterator[tuple[Layer, ...]]:
    """All layers, and one that ends a session before each message that says so."""

    async def end_sessions(_db_session: DbSession, event: MessagesAppended) -> Sequence[SessionBroken]:
        broken: list[SessionBroken] = []
        first_seq = 1
        for message in event.fresh:
            if message.content.startswith(ENDS):
                broken.append(
                    SessionBroken(
                        head=event.head,
                        now=event.now,
                        settle_s=event.settle_s,
                        session_id=UUID(int=message.seq),
                        number=len(broken) + 1,
                        first_seq=first_seq,
                        last_seq=message.seq - 1,
                        reason="idle",
                    )
                )
                first_seq = message.seq
        return broken

    async def on_session(_db_session: DbSession, event: SessionBroken) -> None:
        ended.append((event.first_seq, event.last_seq, event.head.head_seq))

    ender = Layer(name="ender", settings=EnderSettings, end_sessions=end_sessions, on_session=on_session)
    with registered(ender) as all_layers:
        yield all_layers


def late(n: int) -> Json:
    """A message that begins a session."""
    return said(n, content=f"{ENDS} {n}")


async def test_layers_learn_of_each_session_that_ends(api: httpx.AsyncClient, ended: Ended) -> None:
    await append(api, talk(1, 2))
    assert ended == []
    await append(api, [*talk(3, 4), late(5), *talk(6, 8), late(9)])
    assert ended == [(1, 4, 9), (5, 8, 9)]


async def test_the_history_is_cut_to_what_it_keeps(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 24))
    await settle(dispatcher, clock)
    shown = (await append(api, [late(25), said(26)], context={}))["context"]
    assert shown["history"]["last_cut"] == {"at_seq": 9, "reason": "session", "at": clock().isoformat()}
    assert (shown["history"]["messages"], shown["memo_window"]["memos"]) == (18, 1)


async def test_a_session_comes_before_a_cold_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 24))
    await settle(dispatcher, clock, 301)
    await append(api, [late(25)])
    assert await read_cut(api) == (9, "session")


async def test_messages_of_the_new_session_do_not_count(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 20))
    await settle(dispatcher, clock)
    await append(api, [late(21), *talk(22, 27)])
    assert await read_cut(api) == (1, None)
    await append(api, [late(28)])
    await settle(dispatcher, clock)
    assert await read_cut(api) == (9, "session")


async def test_a_cut_waits_for_memos_and_is_made_after_them(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = refuses(500)
    await append(api, talk(1, 24))
    await append(api, [late(25)])
    await settle(dispatcher, clock)
    await append(api, talk(26, 27))
    assert await read_cut(api) == (1, None)
    model.otherwise = "【Highlight 1】: Mira lit the lamp.\n【Highlight 2】: Kai kept the letter."
    await settle(dispatcher, clock)
    shown = await context(api)
    assert shown["history"]["last_cut"] == {"at_seq": 9, "reason": "session", "at": clock().isoformat()}
    assert shown["memo_window"] == {"memos": 1, "first_seq": 1, "last_seq": 8, "gaps": []}


async def test_a_cut_waits_for_a_fold_of_the_summary(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    history = {"keep_messages": 4, "grow_messages": 30, "edges": "every_8"}
    settings = {"preset": "diary", "history": history, "diary": {"enabled": False}}
    await put(api, settings=settings)
    await append(api, talk(1, 14))
    await append(api, [late(15)])
    assert await read_cut(api) == (1, None)
    await settle(dispatcher, clock)
    assert await read_cut(api) == (9, "session")
    assert (await get(api, "/summary"))["last_seq"] == 8
    assert (await get(api, "/inclusion"))["items"][7]["status"] == "summary"


async def test_a_full_history_is_cut_further(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 24))
    await append(api, [late(25), *talk(26, 41)])
    assert await read_cut(api) == (1, None)
    await settle(dispatcher, clock)
    assert await read_cut(api) == (25, "full")
    assert (await context(api))["history"]["messages"] == 17


async def test_a_full_cut_that_waits_too_does_not_delay_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    highlights = "【Highlight 1】: Mira lit the lamp.\n【Highlight 2】: Kai kept the letter."
    model.otherwise = lambda request: refuses(500) if "number 16." in str(request) else highlights
    await append(api, talk(1, 24))
    await append(api, [late(25)])
    await append(api, talk(26, 33))
    await settle(dispatcher, clock)
    assert await read_cut(api) == (9, "session")
    model.otherwise = highlights
    await append(api, talk(34, 41))
    await settle(dispatcher, clock)
    assert await read_cut(api) == (25, "full")


async def test_a_restored_line_waits_on(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    await append(api, talk(1, 24))
    await append(api, [late(25)])
    ok(await api.post("/v1/chats/c/checkpoints", json={"name": "dusk"}), 201)
    ok(await api.post("/v1/chats/c/checkpoints/dusk/restore"), 201)
    await settle(dispatcher, clock)
    assert await read_cut(api) == (9, "session")


async def test_a_break_that_is_cut_off_no_longer_waits(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 24))
    await append(api, [late(25)])
    await cut_off(api, 25)
    await settle(dispatcher, clock)
    assert await read_cut(api) == (1, None)


async def test_after_a_change_a_cut_waits_for_its_new_edge(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    history = {"keep_messages": 4, "grow_messages": 30, "edges": "every_8"}
    await put(api, settings={"preset": "diary", "history": history, "diary": {"enabled": False}})
    await append(api, talk(1, 22))
    await append(api, [late(23)])
    await soft_delete(api, "m19", "m20", "m21")  # seq 17 would leave only three messages of the session
    await settle(dispatcher, clock)
    assert await read_cut(api) == (9, "session")
