"""A frontend sends its whole chat again, and only what differs is touched."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.book import book, due_rows, key_column
from tests.scripted_model import ScriptedModel, quoting_memo
from tests.statements import watched
from tests.talk import Json, append, context, get, ok, put, reimport, said, talk, talk_with_memos, walk, without_ids


async def texts(api: httpx.AsyncClient, **query: Any) -> list[tuple[int, str, str]]:
    """(seq, id, content) of every message."""
    pages = await walk(api, "/v1/chats/c/messages", limit=500, **query)
    return [(one["seq"], one["id"], one["content"]) for page in pages for one in page]


def counted(outcome: Json) -> tuple[int, int, int]:
    return outcome["added"], outcome["changed"], outcome["removed"]


async def rows(database: Database, tenant: str) -> list[list[tuple[Any, ...]]]:
    """Return all rows of the chat."""
    found = []
    async with database.raw() as connection:
        for table in ("chats", "messages", "swipes", "revisions", "source_lines", "memos", "work"):
            query = f"SELECT * FROM {table} WHERE {key_column(table)} = $1 ORDER BY 2, 3"
            found.append([tuple(row) for row in await connection.fetch(query, chat_key(tenant, "c"))])
    return found


async def test_the_same_list_changes_nothing_at_all(
    api: httpx.AsyncClient, database: Database, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 20)
    before = await rows(database, tenant)
    line = (await get(api, ""))["line"]
    for messages in (talk(1, 20), without_ids(talk(1, 20))):
        outcome = await reimport(api, messages)
        assert outcome == {"added": 0, "changed": 0, "removed": 0, "line": line}
    assert await rows(database, tenant) == before


async def test_a_list_for_an_unknown_chat_creates_it_with_batches(api: httpx.AsyncClient) -> None:
    assert counted(await reimport(api, talk(1, 17))) == (17, 0, 0)
    assert [(memo["first_seq"], memo["last_seq"]) for memo in await book(api)] == [(1, 8), (9, 16)]
    assert (await get(api, ""))["counters"] | {"tokens": 0} == {"messages": 17, "turns": 8, "tokens": 0, "memos": 2}


async def test_an_empty_list_takes_every_message_away(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 10))
    assert counted(await reimport(api, [])) == (0, 0, 10)
    assert await texts(api) == []
    assert (await context(api))["history"]["messages"] == 0
    await append(api, [said(11)])
    assert [seq for seq, *_ in await texts(api)] == [11]


async def test_only_the_memo_of_an_edited_message_is_made_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.otherwise = quoting_memo
    await talk_with_memos(api, dispatcher, clock, 40)
    calls = len(model.requests)
    edited = said(11, content="He said, and he said it at some length, that the lamp was red.")
    outcome = await reimport(api, [*talk(1, 10), edited, *talk(12, 40)])
    assert counted(outcome) == (0, 1, 0)
    assert outcome["line"] == (await get(api, ""))["line"]
    clock.step(2)
    await dispatcher.drain()
    assert len(model.requests) == calls + 1
    revisions = await get(api, "/messages/m11/revisions")
    assert [one["content"] for one in revisions["items"]] == [said(11)["content"]]
    memo = (await book(api))[1]
    assert "red" in memo["text"]
    assert said(11)["content"] not in memo["text"]


async def test_missing_messages_are_deleted_and_new_ones_appended(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 10))
    outcome = await reimport(api, [*talk(1, 3), *talk(5, 12)])
    assert counted(outcome) == (2, 0, 1)
    assert [seq for seq, *_ in await texts(api)] == [1, 2, 3, *range(5, 13)]
    assert len(await due_rows(database, tenant)) == 1
    whole = (await get(api, ""))["counters"]
    await append(api, [*talk(1, 3), *talk(5, 12)], "fresh")
    fresh = ok(await api.get("/v1/chats/fresh"), 200)["counters"]
    assert whole == fresh


async def test_a_deleted_message_in_the_list_is_revived_in_place(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 10))
    ok(await api.delete("/v1/chats/c/messages/m4"), 204)
    ok(await api.delete("/v1/chats/c/messages", params={"from_seq": 9}), 204)
    assert counted(await reimport(api, talk(1, 10))) == (3, 0, 0)
    assert [seq for seq, *_ in await texts(api)] == list(range(1, 11))
    assert (await context(api))["history"]["messages"] == 10


async def test_a_reimport_can_change_speaker_role_and_metadata(api: httpx.AsyncClient) -> None:
    await append(api, [said(1, name="Mira", metadata={"mood": 1}), said(2)])
    wanted = [said(1, name="Mo", role="narrator"), said(2, metadata={"x": [1]}, importance=0.5)]
    assert counted(await reimport(api, wanted)) == (0, 2, 0)
    assert counted(await reimport(api, wanted)) == (0, 0, 0)
    first, second = (await get(api, "/messages"))["items"]
    assert (first["role"], first["name"], first["metadata"]) == ("narrator", "Mo", {"mood": 1})
    assert (second["metadata"], second["importance"], second["edited"]) == ({"x": [1]}, 0.5, False)
    (revision,) = (await get(api, "/messages/m1/revisions"))["items"]
    assert (revision["role"], revision["name"]) == ("user", "Mira")


@pytest.mark.parametrize("with_ids", [True, False])
async def test_an_inserted_message_starts_a_line_with_the_same_head(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock, with_ids: bool
) -> None:
    model.otherwise = quoting_memo
    await talk_with_memos(api, dispatcher, clock, 32)
    former = (await get(api, ""))["line"]
    calls = len(model.requests)
    wanted = [*talk(1, 18), said(100), *talk(19, 32)]
    outcome = await reimport(api, wanted if with_ids else without_ids(wanted))
    assert counted(outcome) == (1, 0, 0)
    assert outcome["line"] == (await get(api, ""))["line"] != former
    found = await texts(api)
    assert [content for *_, content in found] == [one["content"] for one in wanted]
    assert [seq for seq, *_ in found] == list(range(1, 34))
    assert [one for *_, one, _ in found if one.startswith("m")][:18] == [f"m{n}" for n in range(1, 19)]
    assert len([one for *_, one, _ in found if one in {f"m{n}" for n in range(19, 33)}]) == 14
    clock.step(2)
    await dispatcher.drain()
    assert len(model.requests) == calls + 2, "the first two memos are still true"
    assert [content for *_, content in await texts(api, line=former)] == [one["content"] for one in talk(1, 32)]
    assert [memo["status"] for memo in await book(api)] == ["ready"] * 4


async def test_moved_messages_keep_their_edits_and_marks(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 6))
    message = "/v1/chats/c/messages/m5"
    ok(await api.post(f"{message}/swipes", json={"content": "Another way to say it."}), 201)
    ok(await api.patch(message, json={"content": "Yet another way.", "pinned": True, "excluded": True}), 200)
    ok(await api.patch("/v1/chats/c/messages/m6", json={"hidden": True}), 200)
    before = (await get(api, "/messages/m5"), await get(api, "/messages/m6"))
    wanted = [said(2), said(1), *talk(3, 4), said(5, content="Said anew."), said(6)]
    assert counted(await reimport(api, wanted)) == (0, 1, 0)
    after = (await get(api, "/messages/m5"), await get(api, "/messages/m6"))
    assert after[0] == before[0] | {
        "content": "Said anew.",
        "swipes": [before[0]["swipes"][0], "Said anew."],
        "tokens": after[0]["tokens"],
    }
    assert after[1] == before[1]
    revisions = (await get(api, "/messages/m5/revisions"))["items"]
    assert [one["content"] for one in revisions] == ["Yet another way.", "Another way to say it."]
    assert [one for _, one, _ in await texts(api)] == ["m2", "m1", "m3", "m4", "m5", "m6"]


async def test_personal_texts_move_with_the_messages_they_followed(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 32)
    for text, after_seq in (("Early.", 1), ("In the middle.", 20), ("At the head.", 32), ("To be forgotten.", 25)):
        ok(await api.post("/v1/chats/c/memos", json={"text": text, "after_seq": after_seq}), 201)
    memos = {memo["text"]: memo["id"] for memo in await book(api)}
    edited = next(memo["id"] for memo in await book(api) if memo["first_seq"] == 25)
    forgotten = memos["To be forgotten."]
    ok(await api.patch(f"/v1/chats/c/memos/{edited}", json={"text": "Edited.", "pinned": True}), 200)
    ok(await api.delete(f"/v1/chats/c/memos/{forgotten}"), 204)
    await reimport(api, [*talk(1, 2), said(100), *talk(3, 32)])
    found = [
        (memo["after_seq"], memo["text"], memo["pinned"]) for memo in await book(api) if memo["origin"] == "person"
    ]
    assert found == [
        (1, "Early.", False),
        (21, "In the middle.", False),
        (26, "Edited.", True),
        (33, "At the head.", False),
    ]
    assert {memos["Early."], memos["In the middle."], edited} <= {memo["id"] for memo in await book(api)}
    numbers = [memo["number"] for memo in await book(api)]
    assert len(numbers) == len(set(numbers))
    assert (await get(api, ""))["counters"]["memos"] == len(numbers) == 8
    assert {memo["text"] for memo in await book(api) if memo["in_prompt"]} == {text for _, text, _ in found}


async def test_reimporting_a_long_chat_takes_no_more_statements(app: FastAPI, api: httpx.AsyncClient) -> None:
    counts = []
    for size in (120, 600):
        chat_id = f"of-{size}"
        await append(api, talk(1, size), chat_id)
        wanted = {"messages": [*talk(1, 5), said(9_999), *talk(6, size)]}
        async with watched(app.state.database) as seen:
            ok(await api.put(f"/v1/chats/{chat_id}/messages", json=wanted), 200)
        counts.append(len(seen.asked))
    assert counts[0] == counts[1]


async def test_reviving_a_message_does_not_count_as_an_append(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await append(api, talk(1, 10))
    ok(await api.delete("/v1/chats/c/messages/m4"), 204)
    before = await get(api, "")
    clock.step(1_000)
    assert counted(await reimport(api, talk(1, 10))) == (1, 0, 0)
    after = await get(api, "")
    assert (after["last_active_at"], after["anchor_seq"]) == (before["last_active_at"], before["anchor_seq"])


async def test_a_retried_append_is_known_on_the_new_line_too(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 6))
    ok(await api.patch("/v1/chats/c/messages/m5", json={"content": "Said anew."}), 200)
    await reimport(api, [said(2), said(1), *talk(3, 4), said(5, content="Said anew."), said(6)])
    answer = await append(api, talk(1, 6), status=200)
    assert answer["created"] == 0


async def test_a_list_with_an_id_twice_is_refused_and_nothing_changes(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 6))
    before = await rows(database, tenant)
    problem = await reimport(api, [said(1), said(2), said(1, content="Twice.")], 422)
    assert problem["errors"][0]["loc"] == ["body", "messages", 2, "id"]
    assert await rows(database, tenant) == before


async def test_the_chat_goes_on_after_any_re_import(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    history = {"keep_messages": 3, "grow_messages": 2}
    await put(api, settings={"memos": {"every_messages": 3}, "history": history})
    await append(api, talk(1, 20))
    await reimport(api, [*talk(1, 9), *talk(15, 20), *talk(10, 14)])
    await append(api, talk(21, 22))
    clock.step(2)
    await dispatcher.drain()
    found = await texts(api)
    assert [seq for seq, *_ in found] == list(range(1, 23))
    ranges = [(memo["first_seq"], memo["last_seq"]) for memo in await book(api)]
    assert ranges == [(first, first + 2) for first in range(1, 20, 3)]
