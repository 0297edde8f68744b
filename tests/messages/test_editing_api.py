"""Messages that change, over HTTP: edited, excluded, pinned, hidden, deleted; one by one and in ranges."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.keys.service import create_key
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.tokens import count_tokens
from tests.book import due_rows
from tests.chats.rich import rows, rows_of
from tests.conftest import NOON, client_of
from tests.statements import watched
from tests.talk import (
    CALL,
    FORMATS,
    Json,
    add_swipe,
    append,
    context,
    cut_off,
    edit,
    get,
    hide,
    ok,
    put,
    said,
    select_swipe,
    soft_delete,
    talk,
    walk,
)

VISIBILITY = "/v1/chats/c/messages/visibility"


async def listed(api: httpx.AsyncClient) -> list[Json]:
    """All messages of the chat `c`."""
    return [one for page in await walk(api, "/v1/chats/c/messages", limit=500) for one in page]


@dataclass(frozen=True)
class Counters:
    """Reads what chats count."""

    api: httpx.AsyncClient
    database: Database
    tenant: str

    async def of(self, chat_id: str = "c") -> tuple[int, int, int, int]:
        """Messages, turns, tokens, and how many messages are sent, of which the chat's row and its context agree."""
        counters = ok(await self.api.get(f"/v1/chats/{chat_id}"), 200)["counters"]
        sent: int = ok(await self.api.get(f"/v1/chats/{chat_id}/context"), 200)["history"]["messages"]
        (chat,) = (await rows_of(self.database, chat_key(self.tenant, chat_id)))["chats"]
        assert chat["history_messages"] == sent
        return counters["messages"], counters["turns"], counters["tokens"], sent

    async def check(self, fresh: list[Json], chat_id: str) -> None:
        """Check that `c` has the counters of a chat with only `fresh`, now and after a reply, a message and a reply."""
        await append(self.api, fresh, chat_id)
        assert await self.of() == await self.of(chat_id)
        for more in ([said(1_000)], [said(1_001), said(1_002)]):
            for name in ("c", chat_id):
                await append(self.api, more, name)
            assert await self.of() == await self.of(chat_id)


@pytest.fixture
def counters(api: httpx.AsyncClient, database: Database, tenant: str) -> Counters:
    return Counters(api, database, tenant)


async def hide_by_scenes(database: Database, tenant: str, *seqs: int) -> None:
    """Hide messages of the history that were shown, as scenes do."""
    async with database.raw() as connection:
        await connection.execute(
            "UPDATE messages SET hidden_by = 'scenes' WHERE chat_key = $1 AND seq = ANY($2)",
            chat_key(tenant, "c"),
            list(seqs),
        )
        await connection.execute(
            "UPDATE chats SET history_messages = history_messages - $2 WHERE chat_key = $1",
            chat_key(tenant, "c"),
            len(seqs),
        )


# --- edit ---


async def test_an_edit_returns_the_changed_message(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await append(api, [said(1), said(2, name="Kai", metadata={"mood": "calm"}), said(3)])
    before = await listed(api)
    clock.step(60)
    answer = await edit(api, "m2", content="The lamp was never lit, and he knew.")
    assert answer == before[1] | {
        "content": "The lamp was never lit, and he knew.",
        "swipes": ["The lamp was never lit, and he knew."],
        "tokens": count_tokens("The lamp was never lit, and he knew."),
        "edited": True,
    }
    assert await get(api, "/messages/m2") == answer
    assert await listed(api) == [before[0], answer, before[2]]


@pytest.mark.parametrize("name", FORMATS)
async def test_the_context_has_an_edited_text_at_once(api: httpx.AsyncClient, name: str) -> None:
    await append(api, talk(1, 3))
    before = await context(api, format=name)
    await edit(api, "m2", content="The lamp was never lit.")
    shown = str(await context(api, format=name))
    assert "The lamp was never lit." in shown
    assert said(2)["content"] in str(before)
    assert said(2)["content"] not in shown
    await edit(api, "m2", content=said(2)["content"])
    assert await context(api, format=name) == before


async def test_every_edit_keeps_what_the_message_said_before(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await append(api, [said(1), said(2, name="Kai")])
    assert await get(api, "/messages/m2/revisions") == {"items": [], "next_cursor": None}
    for n in (1, 2, 3):
        clock.step(60)
        await edit(api, "m2", content=f"Text {n}.")
    first = {"role": "assistant", "name": "Kai", "swipe": 0}
    expected = [
        first | {"number": 3, "content": "Text 2.", "replaced_at": "2026-04-01T12:03:00Z"},
        first | {"number": 2, "content": "Text 1.", "replaced_at": "2026-04-01T12:02:00Z"},
        first | {"number": 1, "content": said(2)["content"], "replaced_at": "2026-04-01T12:01:00Z"},
    ]
    assert (await get(api, "/messages/m2/revisions"))["items"] == expected
    pages = await walk(api, "/v1/chats/c/messages/m2/revisions", limit=2)
    assert pages == [expected[:2], expected[2:]]
    assert (await get(api, "/messages/m1/revisions"))["items"] == []


async def test_the_same_text_again_is_no_edit(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    await append(api, talk(1, 8))
    before = await rows(database, tenant)
    assert not (await edit(api, "m2", content=said(2)["content"]))["edited"]
    assert await rows(database, tenant) == before


async def test_marks_are_set_and_lifted_and_other_fields_stay(api: httpx.AsyncClient) -> None:
    await append(api, [said(1, metadata={"mood": "calm", "n": 1})])
    before = await get(api, "/messages/m1")
    assert await edit(api, "m1", pinned=True) == before | {"pinned": True}
    assert await edit(api, "m1", excluded=True) == before | {"pinned": True, "excluded": True}
    marked = await edit(api, "m1", hidden=True, pinned=False)
    assert marked == before | {"excluded": True, "hidden_by": "user"}
    assert await edit(api, "m1", metadata={"n": 2}) == marked | {"metadata": {"n": 2}}
    assert await edit(api, "m1", hidden=False, excluded=False, metadata=before["metadata"]) == before
    assert (await get(api, "/messages/m1/revisions"))["items"] == []


@pytest.mark.parametrize("metadata", [{}, {"none": None}, {"deep": {"none": None, "list": [None, 1]}, "日": 1e20}])
async def test_metadata_is_replaced_by_exactly_what_is_given(api: httpx.AsyncClient, metadata: Json) -> None:
    await append(api, [said(1, metadata={"mood": "calm"})])
    assert (await edit(api, "m1", metadata=metadata))["metadata"] == metadata
    assert (await get(api, "/messages/m1"))["metadata"] == metadata


async def test_only_a_message_with_tool_calls_may_be_emptied(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, [said(1), said(2, tool_calls=[CALL]), said(3, role="tool", tool_call_id="call-1")])
    emptied = await edit(api, "m2", content="")
    assert (emptied["content"], emptied["tokens"], emptied["tool_calls"]) == ("", 0, [CALL])
    assert (await context(api))["history"]["messages"] == 3
    before = await rows(database, tenant)
    for name in ("m1", "m3"):
        assert (await edit(api, name, 422, content=""))["errors"][0]["loc"] == ["body", "content"]
    assert await rows(database, tenant) == before


async def test_a_blank_message_is_not_sent_until_it_has_text_again(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    await edit(api, "m2", content=" \n\t")
    assert (await context(api))["history"]["messages"] == 2
    await edit(api, "m2", content="Well?")
    assert (await context(api))["history"]["messages"] == 3


async def test_after_an_edit_a_retry_still_needs_the_first_text(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    await edit(api, "m2", content="The lamp was never lit.")
    again = await append(api, talk(1, 3), status=200)
    assert (again["created"], again["messages"][1]["content"]) == (0, "The lamp was never lit.")
    refused = await append(api, [said(2, content="The lamp was never lit.")], status=409)
    assert refused["errors"][0]["id"] == "m2"
    assert [one["content"] for one in await listed(api)][1] == "The lamp was never lit."


# --- delete ---


async def test_a_deleted_message_is_in_no_list_and_in_no_context(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 6))
    await soft_delete(api, "m3", "m4")
    assert [one["seq"] for one in await listed(api)] == [1, 2, 5, 6]
    around = (await get(api, "/messages", around_seq=4, limit=4))["items"]
    assert [one["seq"] for one in around] == [1, 2, 5, 6]
    pages = await walk(api, "/v1/chats/c/messages", limit=2)
    assert [[one["seq"] for one in page] for page in pages] == [[1, 2], [5, 6]]
    assert [one["seq"] for one in (await get(api, "/inclusion"))["items"]] == [1, 2, 5, 6]
    for name in FORMATS:
        shown = str(await context(api, format=name))
        assert [n for n in range(1, 7) if f"number {n}." in shown] == [1, 2, 5, 6]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {"content": "Back."}),
        ("PATCH", "", {"hidden": False}),
        ("DELETE", "", None),
        ("POST", "/swipes", {"content": "Back."}),
        ("PUT", "/swipes/selected", {"index": 0}),
        ("PUT", "/swipes/selected", {"index": 1}),
        ("GET", "/revisions", None),
    ],
)
@pytest.mark.parametrize("name", ["m2", "nobody"])
async def test_a_message_that_was_deleted_or_never_was_is_unknown(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    name: str,
    method: str,
    path: str,
    body: Json | None,
) -> None:
    await append(api, talk(1, 3))
    await add_swipe(api, "m2", "Otherwise.")
    await edit(api, "m2", content="Otherwise, then.")
    await soft_delete(api, "m2")
    before = await rows(database, tenant)
    problem = ok(await api.request(method, f"/v1/chats/c/messages/{name}{path}", json=body), 404)
    assert problem["code"] == "message_not_found"
    assert f"'{name}'" in problem["detail"]
    assert await rows(database, tenant) == before


async def test_id_and_seq_of_a_deleted_message_are_not_reused(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 3))
    await soft_delete(api, "m2", "m3")
    before = await rows(database, tenant)
    assert (await append(api, [said(2, content="Another text.")], status=409))["errors"][0]["id"] == "m2"
    again = await append(api, talk(1, 3), status=200)
    assert (again["created"], [one["seq"] for one in again["messages"]]) == (0, [1, 2, 3])
    assert await rows(database, tenant) == before
    assert (await append(api, [said(4)]))["messages"][0]["seq"] == 4


async def test_a_tombstone_keeps_everything_that_was_said(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 2))
    await edit(api, "m2", content="Edited.")
    await add_swipe(api, "m2", "Swiped.")
    before = await rows(database, tenant)
    await soft_delete(api, "m2")
    after = await rows(database, tenant)
    assert (after["swipes"], after["revisions"]) == (before["swipes"], before["revisions"])
    assert [row["content"] for row in after["messages"]] == [said(1)["content"], "Swiped."]


# --- what is counted ---


STORY: list[Json] = [
    {"role": "assistant", "content": "You are late."},
    {"role": "user", "content": "The tide was early."},
    {"role": "user", "content": "And the lamp was out."},
    {"role": "assistant", "content": "She must not know.", "kind": "thought"},
    {"role": "narrator", "content": "It rains."},
    {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL]},
    {"role": "tool", "content": "Waves.", "tool_call_id": "call-1"},
    {"role": "assistant", "content": "Waves, nothing else."},
    {"role": "system", "content": "A note."},
    {"role": "user", "content": "Then light it."},
    {"role": "assistant", "content": "In a moment."},
    {"role": "user", "content": "Now."},
]
"""Messages `s1…s12` of each role and kind, in an order in which turns depend on the neighbours."""


def story(*, without: frozenset[int] = frozenset(), **content: str) -> list[Json]:
    """The story without some of its messages, or with other texts of some."""
    return [
        {"id": f"s{n}", **message} | ({"content": content[f"s{n}"]} if f"s{n}" in content else {})
        for n, message in enumerate(STORY, start=1)
        if n not in without
    ]


@pytest.mark.parametrize("gone", range(1, 13))
async def test_deleted_messages_are_not_counted(api: httpx.AsyncClient, counters: Counters, gone: int) -> None:
    await append(api, story())
    await soft_delete(api, f"s{gone}")
    await counters.check(story(without=frozenset({gone})), "d")


@pytest.mark.parametrize("order", [range(1, 12), range(12, 1, -1), (6, 2, 10, 8, 4, 12, 3, 5, 11)], ids=str)
async def test_counters_are_correct_after_each_of_many_deletions(
    api: httpx.AsyncClient, counters: Counters, order: tuple[int, ...]
) -> None:
    await append(api, story())
    gone: frozenset[int] = frozenset()
    for n in order:
        await soft_delete(api, f"s{n}")
        gone |= {n}
        await append(api, story(without=gone), f"d{n}")
        assert await counters.of() == await counters.of(f"d{n}")
    await counters.check(story(without=gone), "last")


async def test_a_chat_counts_what_its_messages_say_now(api: httpx.AsyncClient, counters: Counters) -> None:
    await append(api, story())
    await edit(api, "s2", content="The tide was much earlier than either of us had thought it would be.")
    await add_swipe(api, "s8", "Nothing.")
    await add_swipe(api, "s11", "In a moment, or in an hour, or never at all.")
    await select_swipe(api, "s11", 0)
    await edit(api, "s5", content=" ")
    fresh = story(s2="The tide was much earlier than either of us had thought it would be.", s8="Nothing.", s5=" ")
    await counters.check(fresh, "d")


async def test_marked_and_hidden_messages_are_counted(api: httpx.AsyncClient, counters: Counters) -> None:
    await append(api, story())
    messages, turns, tokens, sent = await counters.of()
    assert (messages, turns, sent) == (12, 2, 11)
    assert tokens == sum(count_tokens(str(message["content"])) for message in STORY)
    await edit(api, "s2", excluded=True, pinned=True)
    assert await counters.of() == (messages, turns, tokens, sent)
    await hide(api, (1, 5))
    assert await counters.of() == (messages, turns, tokens, sent - 4), "a thought was not sent before"
    await edit(api, "s4", hidden=False)
    await edit(api, "s3", hidden=True, content="And the lamp was out")
    await hide(api, (1, 12), hidden=False)
    await edit(api, "s3", content=str(STORY[2]["content"]))
    assert await counters.of() == (messages, turns, tokens, sent)


# --- hidden ---


async def test_ranges_are_hidden_and_shown_all_at_once_in_any_order(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 12))
    await hide(api, (6, 7))
    wanted = [
        {"first_seq": 9, "last_seq": 10, "hidden": True},
        {"first_seq": 1, "last_seq": 3, "hidden": True},
        {"first_seq": 4, "last_seq": 8, "hidden": False},
    ]
    answer = ok(await api.post(VISIBILITY, json={"ranges": wanted}), 200)
    assert answer == {"changed": 7}
    assert [one["seq"] for one in await listed(api) if one["hidden_by"]] == [1, 2, 3, 9, 10]
    assert (await context(api))["history"]["messages"] == 7
    assert ok(await api.post(VISIBILITY, json={"ranges": wanted}), 200) == {"changed": 0}


async def test_a_range_passes_over_tombstones_and_ends_with_the_chat(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 8))
    await soft_delete(api, "m3")
    assert await hide(api, (2, 2**31 - 1)) == 6
    assert [row["hidden_by"] for row in (await rows(database, tenant))["messages"] if row["seq"] == 3] == [None]
    assert await hide(api, (3, 3), (9, 100)) == 0
    await append(api, [said(9)])
    assert [one["seq"] for one in await listed(api) if not one["hidden_by"]] == [1, 9]
    assert await hide(api, (1, 100), hidden=False) == 6
    assert [one["seq"] for one in await listed(api)] == [1, 2, 4, 5, 6, 7, 8, 9]


async def test_a_thousand_ranges_are_one_change(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 1_000))
    clock.step(2)
    await dispatcher.drain()
    assert await hide(api, *((n, n) for n in range(1, 1_000, 2))) == 500
    assert [one["seq"] for one in await listed(api) if one["hidden_by"]] == list(range(1, 1_000, 2))
    assert len(await due_rows(database, tenant)) == 125
    assert await hide(api, *((n, n) for n in range(1_000, 0, -1)), hidden=False) == 500
    assert await due_rows(database, tenant) == []


def ranges(*given: tuple[Any, ...]) -> list[Json]:
    return [dict(zip(("first_seq", "last_seq", "hidden"), one, strict=False)) for one in given]


@pytest.mark.parametrize(
    ("given", "loc"),
    [
        (ranges((1, 3, True), (3, 4, True)), ["ranges", 1, "first_seq"]),
        (ranges((5, 6, True), (1, 8, False)), ["ranges", 0, "first_seq"]),
        (ranges((1, 2, True), (7, 8, True), (1, 2, True)), ["ranges", 2, "first_seq"]),
        (ranges((1, 2, True), (4, 3, True)), ["ranges", 1, "last_seq"]),
        (ranges((0, 2, True)), ["ranges", 0, "first_seq"]),
        (ranges((1, 2**31, True)), ["ranges", 0, "last_seq"]),
        (ranges((1, 1.5, True)), ["ranges", 0, "last_seq"]),
        (ranges((1, 2, "perhaps")), ["ranges", 0, "hidden"]),
        (ranges((1, 2, None)), ["ranges", 0, "hidden"]),
        (ranges((1, 2)), ["ranges", 0, "hidden"]),
        ([{"first_seq": 1, "last_seq": 2, "hidden": True, "by": "scenes"}], ["ranges", 0, "by"]),
        ([], ["ranges"]),
        (ranges(*((n, n, True) for n in range(1, 1_002))), ["ranges"]),
        (None, ["ranges"]),
    ],
    ids=lambda given: str(given)[:40],
)
async def test_invalid_ranges_are_rejected_by_index_without_a_change(
    api: httpx.AsyncClient, database: Database, tenant: str, given: Any, loc: list[Any]
) -> None:
    await append(api, talk(1, 8))
    before = await rows(database, tenant)
    problem = ok(await api.post(VISIBILITY, json={"ranges": given}), 422)
    assert problem["errors"][0]["loc"] == ["body", *loc]
    assert await rows(database, tenant) == before


async def test_a_message_hidden_by_scenes_can_be_hidden_by_the_user(
    api: httpx.AsyncClient, database: Database, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    await dispatcher.drain()
    await hide_by_scenes(database, tenant, 2, 3, 4, 5)
    assert [one["hidden_by"] for one in await listed(api)][:6] == [None, *["scenes"] * 4, None]
    assert (await context(api))["history"]["messages"] == 4

    assert (await edit(api, "m2", hidden=True))["hidden_by"] == "user"
    assert await hide(api, (3, 3)) == 1
    assert [one["hidden_by"] for one in await listed(api)][:5] == [None, "user", "user", "scenes", "scenes"]
    assert (await context(api))["history"]["messages"] == 4, "they were not sent before"
    assert len(await due_rows(database, tenant)) == 1, "what scenes hide is summarised, what the user hides is not"
    await hide(api, (2, 3), hidden=False)
    assert await due_rows(database, tenant) == []
    assert (await context(api))["history"]["messages"] == 6


async def test_showing_what_scenes_hid_makes_no_memo_due(
    api: httpx.AsyncClient, database: Database, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 8))
    clock.step(2)
    await dispatcher.drain()
    await hide_by_scenes(database, tenant, 2, 3)
    assert (await edit(api, "m2", hidden=False))["hidden_by"] is None
    assert await hide(api, (1, 8), hidden=False) == 1
    assert (await context(api))["history"]["messages"] == 8
    assert await due_rows(database, tenant) == []


# --- refused ---


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": None, "pinned": None}, "content"),
        ({"content": ""}, "content"),
        ({"content": 5}, "content"),
        ({"content": ["x"]}, "content"),
        ({"content": "x" * 100_001}, "content"),
        ({"content": "a\0b"}, "content"),
        ({"excluded": "perhaps"}, "excluded"),
        ({"pinned": 2}, "pinned"),
        ({"hidden": "scenes"}, "hidden"),
        ({"metadata": [1]}, "metadata"),
        ({"metadata": {"a": "x" * 16_384}}, "metadata"),
        ({"content": "x", "role": "user"}, "role"),
        ({"content": "x", "name": "Kai"}, "name"),
        ({"content": "x", "seq": 2}, "seq"),
        ({"content": "x", "hidden_by": "user"}, "hidden_by"),
        ({"content": "x", "swipes": ["y"]}, "swipes"),
    ],
    ids=lambda given: str(given)[:40],
)
async def test_an_invalid_change_is_rejected_by_field_without_effect(
    api: httpx.AsyncClient, database: Database, tenant: str, body: Json, field: str
) -> None:
    await append(api, talk(1, 8))
    before = await rows(database, tenant)
    problem = await edit(api, "m2", 422, **body)
    assert problem["errors"][0]["loc"] == ["body", field]
    assert await rows(database, tenant) == before


CHANGES: list[tuple[str, str, Json | None]] = [
    ("PATCH", "/m2", {"content": "Otherwise."}),
    ("DELETE", "/m2", None),
    ("DELETE", "?from_seq=2", None),
    ("POST", "/visibility", {"ranges": [{"first_seq": 1, "last_seq": 2, "hidden": True}]}),
    ("POST", "/m2/swipes", {"content": "Otherwise."}),
    ("PUT", "/m2/swipes/selected", {"index": 0}),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES, ids=[f"{method} {path}" for method, path, _ in CHANGES])
async def test_unauthorised_callers_cannot_change_a_message(
    app: FastAPI,
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    method: str,
    path: str,
    body: Json | None,
) -> None:
    await put(api, user_id="mira")
    await append(api, talk(1, 8))
    await add_swipe(api, "m2", "Otherwise, then.")
    async with database.unit_of_work() as db_session:
        stranger = (await create_key(db_session, f"{tenant}-x", ["read", "write"], NOON)).text
        reader = (await create_key(db_session, tenant, ["read"], NOON)).text
    other_user = ok(
        await api.post("/v1/tokens", json={"user_id": "ren", "scopes": ["read", "write"], "ttl_s": 60}), 201
    )["token"]
    before = await rows(database, tenant)
    for key, status, code in (
        (stranger, 404, "chat_not_found"),
        (other_user, 404, "chat_not_found"),
        (reader, 403, "forbidden"),
    ):
        async with client_of(app, key) as client:
            problem = ok(await client.request(method, f"/v1/chats/c/messages{path}", json=body), status)
        assert problem["code"] == code
    assert await rows(database, tenant) == before
    assert (await api.request(method, f"/v1/chats/c/messages{path}", json=body)).is_success
    assert await rows(database, tenant) != before


# --- what it costs the others ---


async def test_changes_do_not_add_statements_to_appends_and_reads(app: FastAPI, api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 40))
    await edit(api, "m35", content="Edited.")
    await add_swipe(api, "m36", "Swiped.")
    await edit(api, "m37", pinned=True, excluded=True)
    await hide(api, (3, 4), (38, 38))
    await soft_delete(api, "m5", "m39")
    ok(await api.delete("/v1/chats/c/messages", params={"from_seq": 40}), 204)
    await append(api, [said(41)])
    await context(api)
    async with watched(app.state.database) as statements:
        await append(api, [said(42)])
    assert (len(statements.asked), statements.frame) == (3, ["BEGIN", "COMMIT"]), statements.asked
    async with watched(app.state.database) as statements:
        await context(api)
    assert (len(statements.asked), statements.frame) == (1, []), statements.asked


async def test_a_retried_append_does_not_reveal_a_deleted_text(api: httpx.AsyncClient) -> None:
    await append(api, [said(1), said(2)])
    await edit(api, "m1", content="A secret.")
    await soft_delete(api, "m1")
    (known, _) = (await append(api, [said(1), said(2)], status=200))["messages"]
    assert (known["seq"], known["content"]) == (1, said(1)["content"])


async def test_a_retry_has_the_time_of_a_deleted_message(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    first = await append(api, [said(1), said(2, sent_at="2026-01-01T00:00:00Z"), said(3)])
    await soft_delete(api, "m1", "m2")
    for _ in range(2):
        clock.step(60)
        again = await append(api, talk(1, 3), status=200)
        assert [one["sent_at"] for one in again["messages"]] == [one["sent_at"] for one in first["messages"]]


async def test_a_retried_append_marks_what_was_deleted_since(api: httpx.AsyncClient) -> None:
    first = await append(api, talk(1, 4))
    await soft_delete(api, "m2")
    await cut_off(api, 4)
    again = await append(api, talk(1, 5))
    assert again["created"] == 1
    assert again["messages"][:4] == [
        first["messages"][0],
        first["messages"][1] | {"deleted": True},
        first["messages"][2],
        first["messages"][3] | {"deleted": True},
    ]
    assert "deleted" not in again["messages"][4]


@pytest.mark.parametrize("message_id", ["a/b", "/", "a/", "m1/swipes", "x?y#z", "%2F", "a b", "語"])
async def test_a_message_is_found_by_any_valid_id(api: httpx.AsyncClient, message_id: str) -> None:
    await append(api, [said(1), said(2, id=message_id)])
    path = f"/v1/chats/c/messages/{quote(message_id, safe='')}"
    assert ok(await api.get(path), 200)["id"] == message_id
    ok(await api.patch(path, json={"content": "Edited."}), 200)
    assert [one["content"] for one in ok(await api.get(f"{path}/revisions"), 200)["items"]] == [said(2)["content"]]
    ok(await api.post(f"{path}/swipes", json={"content": "Another."}), 201)
    assert ok(await api.put(f"{path}/swipes/selected", json={"index": 0}), 200)["content"] == "Edited."
    ok(await api.delete(path), 204)
    assert [one["id"] for one in (await get(api, "/messages"))["items"]] == ["m1"]


@pytest.mark.parametrize("message_id", [".", ".."])
async def test_an_id_that_breaks_a_path_is_rejected(api: httpx.AsyncClient, message_id: str) -> None:
    problem = await append(api, [said(1, id=message_id)], status=422)
    assert problem["errors"][0]["loc"] == ["body", "messages", 0, "id"]
