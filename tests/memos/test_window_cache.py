"""The window on the chat's row is a cache: after every transition it is what the book says."""

import asyncio
from typing import Any

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.chats.chat_lock import ChatRef, lock_head
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.memos.handlers import read_window
from tests.book import book
from tests.oracle.service import Service
from tests.scripted_model import ScriptedModel, quoting_memo, refuses
from tests.talk import Json, append, context, get, ok, put, talk

answers = st.sampled_from([quoting_memo, "NONE", "I am only a language model.", refuses(503)])
picks = st.integers(0, 99)


@st.composite
def layers(draw: st.DrawFn) -> Json:
    """Settings under which much happens within a few messages."""
    keep, grow = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    patience = draw(st.sampled_from([None, 1, 2, 3, 5]))
    return {
        "memos": {
            "enabled": draw(st.sampled_from([True, True, False])),
            "window": draw(st.integers(0, 3)),
            "every_messages": draw(st.sampled_from([1, 2, 3, 6, 8])),
        },
        "history": {
            "keep_messages": keep,
            "grow_messages": grow,
            "max_messages": None if patience is None else keep + grow + patience,
        },
    }


async def test_the_cached_window_equals_the_book_after_each_change(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    model: ScriptedModel,
    clock: SteppedClock,
    database: Database,
    tenant: str,
) -> None:
    class Told(Conversation):
        service = Service(api, dispatcher, model, clock, database, tenant)

    await asyncio.to_thread(
        run_state_machine_as_test,
        Told,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        ),
    )


class Conversation(RuleBasedStateMachine):
    """One chat, and everything that can happen to its book."""

    service: Service

    def __init__(self) -> None:
        super().__init__()
        self.told = 0
        self.memos: list[Json] = []

    @initialize(wanted=layers())
    def begin(self, wanted: Json) -> None:
        self.service.run(put(self.service.api, settings=wanted))

    def teardown(self) -> None:
        self.service.run(self.service.api.delete("/v1/chats/c"))

    @rule(count=st.integers(1, 7))
    def append_messages(self, count: int) -> None:
        self.service.run(append(self.service.api, talk(self.told + 1, self.told + count)))
        self.told += count

    @rule(answer=answers, wait_s=st.sampled_from([3, 3, 700, 4_000]))
    def make(self, answer: Any, wait_s: float) -> None:
        self.service.model.otherwise = answer
        self.service.clock.step(wait_s)
        self.service.run(self.service.dispatcher.drain())

    @rule(wanted=layers())
    def set(self, wanted: Json) -> None:
        self.service.run(put(self.service.api, status=200, settings=wanted))

    @rule(pick=picks)
    def write(self, pick: int) -> None:
        memory = {"text": "They had met before.", "after_seq": pick % (self.told + 1)}
        self.ask("POST", "", 201, memory)

    @precondition(lambda self: self.memos)
    @rule(pick=picks, change=st.sampled_from([{"text": "It was not so."}, {"pinned": True}, {"pinned": False}]))
    def change(self, pick: int, change: Json) -> None:
        self.ask("PATCH", self.path(pick), 200, change)

    @precondition(lambda self: self.memos)
    @rule(pick=picks)
    def delete(self, pick: int) -> None:
        self.ask("DELETE", self.path(pick), 204)

    @precondition(lambda self: any(memo["first_seq"] for memo in self.memos))
    @rule(pick=picks)
    def regenerate(self, pick: int) -> None:
        made = [memo for memo in self.memos if memo["first_seq"]]
        path = f"/{made[pick % len(made)]['id']}/regenerate"
        self.ask("POST", path, 202, {"replace_edited": True})

    def path(self, pick: int) -> str:
        return f"/{self.memos[pick % len(self.memos)]['id']}"

    def ask(self, method: str, path: str, status: int, body: Json | None = None) -> None:
        ok(self.service.run(self.service.api.request(method, f"/v1/chats/c/memos{path}", json=body)), status)

    @invariant()
    def the_window_equals_the_book(self) -> None:
        chat, self.memos, gaps, filling_from = self.service.run(self.read())
        shown = [memo["number"] for memo in self.memos if memo["in_prompt"]]
        assert shown == expected_window(self.memos, chat)
        told = {seq for first, last in gaps for seq in range(first, last + 1)}
        assert {seq for seq in told if seq >= filling_from} == set(range(filling_from, chat["anchor_seq"]))

    async def read(self) -> tuple[Json, list[Json], list[list[int]], int]:
        """The chat, its book, the gaps and where the batch that fills begins, after comparing the column."""
        ref = ChatRef(self.service.tenant, "c", chat_key(self.service.tenant, "c"))
        async with self.service.database.unit_of_work() as db_session:
            window = await read_window(db_session, await lock_head(db_session, ref))
            column = await db_session.raw.fetchval(
                "SELECT (context_cache -> 'memos')::text FROM chats WHERE chat_key = $1", ref.key
            )
            cursor = "SELECT (cursors #>> '{memos,first_seq}')::int FROM chats WHERE chat_key = $1"
            filling_from = await db_session.raw.fetchval(cursor, ref.key)
        assert {**window_of_nothing(), **orjson.loads(column or "{}")} == window
        chat = await get(self.service.api, "")
        if filling_from is None or not chat["settings"]["memos"]["enabled"]:
            filling_from = chat["head_seq"] + 1
        return chat, await book(self.service.api), window["gaps"], filling_from


def window_of_nothing() -> Json:
    return {"memos": [], "pinned": [], "gaps": []}


def expected_window(memos: list[Json], chat: Json) -> list[int]:
    """The numbers of the memos that should be shown, in story order, by the words of the book alone."""
    settings = chat["settings"]["memos"]
    shown = [
        memo
        for memo in memos
        if memo["status"] == "ready"
        and not memo["stale"]
        and (memo["first_seq"] is None or memo["first_seq"] < chat["anchor_seq"])
        and (settings["enabled"] or memo["origin"] == "person")
    ]
    unpinned = [memo for memo in shown if not memo["pinned"]]
    newest = unpinned[max(len(unpinned) - settings["window"], 0) :]
    return [memo["number"] for memo in shown if memo["pinned"] or memo in newest]


@pytest.fixture
async def cut_often(api: httpx.AsyncClient) -> None:
    """Batches of six, and a cut whenever five messages would be sent."""
    history = {"keep_messages": 1, "grow_messages": 0, "max_messages": 5}
    await put(api, settings={"memos": {"every_messages": 6}, "history": history})


async def test_an_open_batch_after_a_forced_cut_is_a_gap_until_made(
    api: httpx.AsyncClient, cut_often: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    for last, anchor_seq, gaps in ((4, 1, []), (5, 5, [[1, 4]]), (6, 5, [[1, 4]])):
        await append(api, talk(last, last) if last > 4 else talk(1, 4))
        shown = await context(api)
        assert (shown["history"]["anchor_seq"], shown["memo_window"]["gaps"]) == (anchor_seq, gaps)
    clock.step(2)
    await dispatcher.drain()
    assert (await context(api))["memo_window"]["gaps"] == []


async def test_a_gap_grows_with_the_anchor_and_ends_without_memos(
    api: httpx.AsyncClient,
) -> None:
    history = {"keep_messages": 4, "grow_messages": 0, "max_messages": 20}
    await put(api, settings={"memos": {"include_user": False, "every_messages": 64}, "history": history})
    for first in (1, 21, 41):
        await append(api, talk(first, first + 19))
        shown = await context(api)
        anchor_seq = shown["history"]["anchor_seq"]
        assert anchor_seq > first
        assert shown["memo_window"]["gaps"] == [[1, anchor_seq - 1]]
    await put(api, status=200, settings={"memos": {"enabled": False}})
    assert (await context(api))["memo_window"]["gaps"] == []
