"""The text that a person writes into the summary is in every later version, word for word."""

import json
import re
from typing import Any
from uuid import UUID

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.tokens import count_tokens
from app.layers.documents import Document, list_documents
from app.registry import LAYERS
from tests.background import settle
from tests.scripted_model import ScriptedModel
from tests.summary.folds import anchor, gaps, shown, versions
from tests.talk import Json, append, context, cut_off, edit, get, ok, put, soft_delete, talk
from tests.words import numbers

pytestmark = pytest.mark.usefixtures("folding")

KEPT = "Mira hid the key #999.\n\nNobody else knows."
HEADING = "## Recent Conversation Summary"


@pytest.fixture
async def kept(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A person's text replaced the fold of 1…6 (version 2), and 7…12 are folded after it (version 3)."""
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    await write(api)
    await append(api, talk(22, 27))
    await settle(dispatcher, clock)


async def write(api: httpx.AsyncClient, text: str = KEPT, status: int = 200, **more: Any) -> Json:
    return ok(await api.put("/v1/chats/c/summary", json={"text": text, **more}), status)


async def choose(api: httpx.AsyncClient, version: int, status: int = 200) -> Json:
    return ok(await api.put("/v1/chats/c/summary/current", json={"version": version}), status)


async def texts(api: httpx.AsyncClient, path: str = "/summary") -> tuple[str, str]:
    found = await get(api, path)
    return found["kept_text"], found["text"]


async def segment(api: httpx.AsyncClient, chat_id: str = "c", **query: Any) -> str:
    """The text of the summary in a context."""
    found = ok(await api.get(f"/v1/chats/{chat_id}/context", params=query), 200)["segments"]
    return next((one["text"] for one in found if one["name"] == "summary"), "")


def in_prompt(kept_text: str, text: str = "") -> str:
    return "\n\n".join(part for part in (HEADING, kept_text, text) if part)


def spoke_of(first: int, last: int) -> str:
    return f"They spoke of {' '.join(f'#{n}' for n in numbers(first, last))}."


# --- what is kept, and where it is read ---


async def test_a_written_text_is_kept_and_replaces_what_was_folded(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    written = await write(api)
    assert (written["kept_text"], written["text"]) == (KEPT, "")
    assert (written["first_seq"], written["last_seq"]) == (1, 6)
    assert (written["origin"], written["edited"], written["in_prompt"]) == ("person", True, True)
    assert await segment(api) == in_prompt(KEPT)


async def test_every_later_version_has_the_kept_text_at_its_head(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    for n in range(28, 60):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
        told = spoke_of(7, await anchor(api) - 1)
        assert await segment(api) == in_prompt(KEPT, told)
        assert await texts(api) == (KEPT, told)
    listed = (await get(api, "/summary/versions"))["items"]
    assert [one["kept_text"] for one in listed] == [KEPT] * (len(listed) - 1) + [""]
    assert {one["origin"] for one in listed[:-2]} == {"model"}
    assert await texts(api, "/summary/versions/3") == (KEPT, spoke_of(7, 12))


async def test_sources_state_and_documents_contain_the_kept_text(
    api: httpx.AsyncClient, kept: None, database: Database, tenant: str
) -> None:
    rows = (await get(api, "/state"))["layers"]["summary"]["narrative_versions"]
    assert [(row["kept_text"], row["text"]) for row in rows][1:] == [(KEPT, ""), (KEPT, spoke_of(7, 12))]
    found = await context(api)
    (row,) = [one for one in found["segments"] if one["name"] == "summary"]
    assert row["sources"] == ["summary:3"]
    assert row["tokens"] == count_tokens(row["text"])
    line = UUID((await get(api, ""))["line"])
    async with database.unit_of_work() as db_session:
        documents = await list_documents(db_session, LAYERS, (chat_key(tenant, "c"), line))
    assert documents == [Document("summary:3", f"{KEPT}\n\n{spoke_of(7, 12)}", 1, 12)]
    statuses = [(one["status"], one["by"]) for one in (await get(api, "/inclusion"))["items"]]
    assert statuses[:12] == [("summary", "summary:3")] * 12


async def test_the_model_folds_only_the_text_and_reads_the_kept_one(
    api: httpx.AsyncClient, kept: None, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(28, 33))
    await settle(dispatcher, clock)
    formers = []
    for call in model.calls[-2:]:
        asked = str(call.body["messages"][-1]["content"])
        former, own = (re.search(rf"<{name}>\s*(\".*\")\s*</{name}>", asked) for name in ("former", "kept"))
        assert former
        assert own
        assert json.loads(own.group(1)) == KEPT
        formers.append(json.loads(former.group(1)))
    assert formers == ["", spoke_of(7, 12)]


async def test_without_a_kept_text_the_prompt_does_not_mention_one(
    api: httpx.AsyncClient, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    assert "<kept>" not in str(model.calls[-1].body["messages"][-1]["content"])


async def test_the_folded_text_may_be_short_beside_a_long_kept_one(
    api: httpx.AsyncClient, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await write(api, "Mira hid the key. " * 400)
    model.otherwise = "They met."
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    assert (await get(api, "/summary"))["text"] == "They met."


async def test_an_answer_without_changes_keeps_both_texts(
    api: httpx.AsyncClient, kept: None, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    model.otherwise = "No changes to the summary."
    await append(api, talk(28, 33))
    await settle(dispatcher, clock)
    assert await segment(api) == in_prompt(KEPT, spoke_of(7, 12))
    assert await gaps(api) == []


async def test_quotes_are_folded_after_the_kept_text(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await write(api)
    said = [f"I promise you number {n}, Kai, by the lighthouse of Rook {n}." for n in range(120)]
    for first in (0, 60):
        await append(api, [{"role": "user", "content": text} for text in said[first : first + 60]])
        await settle(quoting_dispatcher, clock)
    found = await get(api, "/summary")
    assert (found["kept_text"], found["origin"]) == (KEPT, "extractive")
    assert KEPT not in found["text"]
    assert await segment(api) == in_prompt(KEPT, found["text"])


# --- what a person sends ---


async def test_a_new_text_replaces_kept_and_folded_ones(api: httpx.AsyncClient, kept: None) -> None:
    written = await write(api, "It began at #5.")
    assert (written["kept_text"], written["text"], written["last_seq"]) == ("It began at #5.", "", 12)
    assert await segment(api) == in_prompt("It began at #5.")


async def test_a_text_that_is_not_to_be_kept_is_folded(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    written = await write(api, "It began at #5.", keep=False)
    assert (written["kept_text"], written["text"], written["last_seq"]) == ("", "It began at #5.", 12)
    assert await segment(api) == in_prompt("", "It began at #5.")
    await append(api, talk(28, 33))
    await settle(dispatcher, clock)
    assert await texts(api) == ("", "They spoke of #5 #13 #14 #15 #16 #17 #18.")


async def test_a_kept_text_has_at_most_8000_characters(api: httpx.AsyncClient) -> None:
    assert (await write(api, "k" * 8_000))["kept_text"] == "k" * 8_000
    (error,) = (await write(api, "k" * 8_001, status=422))["errors"]
    assert error["loc"] == ["body", "text"]
    assert "8000" in error["msg"]
    assert (await write(api, "k" * 20_000, keep=False))["text"] == "k" * 20_000
    await write(api, "k" * 20_001, status=422, keep=False)


async def test_a_kept_text_shows_at_once_even_if_its_fold_waits(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    await write(api)
    await soft_delete(api, "m19", "m20", "m21")
    assert await anchor(api) == 1
    assert await segment(api) == in_prompt(KEPT)
    assert (await get(api, "/summary"))["in_prompt"]


# --- messages that change ---


async def test_an_edit_after_it_keeps_the_text_in_the_context(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await edit(api, "m8", content="user says a sentence about lamp number 800.")
    assert await segment(api) == in_prompt(KEPT)
    assert await gaps(api) == [[7, 12]]
    await settle(dispatcher, clock)
    assert await segment(api) == in_prompt(KEPT, "They spoke of #7 #800 #9 #10 #11 #12.")
    assert await gaps(api) == []


async def test_an_edit_of_what_it_replaced_marks_only_it_as_stale(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    calls = len(model.calls)
    await edit(api, "m3", content="user says a sentence about lamp number 300.")
    assert await segment(api) == in_prompt(KEPT, spoke_of(7, 12))
    await settle(dispatcher, clock)
    assert len(model.calls) == calls
    assert [stale for _, _, stale in await versions(api)] == [False, True, True]


async def test_it_stays_in_the_context_while_the_summary_is_off(api: httpx.AsyncClient, kept: None) -> None:
    await put(api, status=200, settings={"summary": {"enabled": False}})
    assert await segment(api) == in_prompt(KEPT)


@pytest.mark.parametrize(("from_seq", "last_seq"), [(10, 6), (4, 3), (1, None)])
async def test_a_truncation_keeps_the_text_and_lowers_its_end(
    api: httpx.AsyncClient,
    kept: None,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    from_seq: int,
    last_seq: int | None,
) -> None:
    await cut_off(api, from_seq)
    found = await get(api, "/summary")
    assert (found["kept_text"], found["text"], found["last_seq"]) == (KEPT, "", last_seq)
    assert await segment(api) == in_prompt(KEPT)
    for n in range(41, 64):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    told = [*numbers((last_seq or 0) + 1, from_seq - 1), *numbers(41, 63)]
    assert (await shown(api))[1:] == told[: len(await shown(api)) - 1]
    assert len(await shown(api)) > 1
    assert await gaps(api) == []


# --- lines ---


@pytest.mark.parametrize(("at_seq", "last_seq"), [(17, 12), (9, 9), (3, 3)])
async def test_a_fork_keeps_the_text_and_lowers_its_end(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, at_seq: int, last_seq: int
) -> None:
    """The text replaces the second fold, so that its step begins after the fork."""
    for n in range(1, 28):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    await write(api)
    await append(api, talk(28, 33))
    await settle(dispatcher, clock)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f", "at_seq": at_seq}), 201)
    found = ok(await api.get("/v1/chats/f/summary"), 200)
    assert (found["kept_text"], found["text"], found["last_seq"]) == (KEPT, "", last_seq)
    assert await segment(api, "f") == in_prompt(KEPT)


async def test_a_checkpoint_and_its_restore_have_the_kept_text(api: httpx.AsyncClient, kept: None) -> None:
    frozen = ok(await api.post("/v1/chats/c/checkpoints", json={"name": "before"}), 201)
    await write(api, "It began at #5.")
    assert await segment(api, line=frozen["line"]) == in_prompt(KEPT, spoke_of(7, 12))
    ok(await api.post("/v1/chats/c/checkpoints/before/restore"), 201)
    assert await segment(api) == in_prompt(KEPT, spoke_of(7, 12))
    assert await texts(api) == (KEPT, spoke_of(7, 12))


@pytest.mark.parametrize("after_seq", [2, 9, 24])
async def test_a_reimport_onto_a_new_line_keeps_the_text(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock, after_seq: int
) -> None:
    inserted = [*talk(1, after_seq), {**talk(90, 90)[0], "id": "between"}, *talk(after_seq + 1, 27)]
    before = (await get(api, ""))["line"]
    assert ok(await api.put("/v1/chats/c/messages", json={"messages": inserted}), 200)["line"] != before
    assert (await segment(api)).startswith(in_prompt(KEPT))
    await settle(dispatcher, clock)
    assert (await segment(api)).startswith(in_prompt(KEPT))
    story = [*numbers(1, after_seq), 90, *numbers(after_seq + 1, 27)]
    assert (await shown(api))[1:] == story[min(after_seq, 6) : await anchor(api) - 1]


# --- regenerate ---


async def test_regenerate_keeps_the_kept_text(
    api: httpx.AsyncClient, kept: None, model: ScriptedModel, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    model.otherwise = "They spoke of lamps."
    ok(await api.post("/v1/chats/c/summary/regenerate"), 202)
    await settle(dispatcher, clock, 0)
    assert await segment(api) == in_prompt(KEPT, "They spoke of lamps.")


async def test_regenerate_asks_before_it_replaces_a_kept_text(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 21))
    await write(api)
    assert ok(await api.post("/v1/chats/c/summary/regenerate"), 409)["code"] == "summary_edited"


async def test_regenerate_replaces_a_kept_text_if_asked_to(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    assert (await segment(api)).startswith(in_prompt(KEPT)), "until it is made"
    await settle(dispatcher, clock, 0)
    assert await texts(api) == ("", spoke_of(1, 12))
    assert await segment(api) == in_prompt("", spoke_of(1, 12))
    for from_seq in (8, 5, 1):
        await cut_off(api, from_seq)
        assert (await get(api, "/summary"))["kept_text"] == ""


async def test_a_replacement_goes_back_to_before_every_kept_text(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    for n in range(1, 28):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    for first, text in ((28, "It began at #5."), (34, KEPT)):
        await write(api, text)
        await append(api, talk(first, first + 5))
        await settle(dispatcher, clock)
    assert [one["kept_text"] for one in (await get(api, "/summary/versions"))["items"]].count("") == 2
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    await settle(dispatcher, clock, 0)
    assert await texts(api) == ("", spoke_of(1, await anchor(api) - 1))


async def test_a_text_written_after_the_request_is_not_replaced(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    await write(api, "It began at #5.")
    await append(api, talk(28, 33))
    await settle(dispatcher, clock)
    assert await texts(api) == ("It began at #5.", spoke_of(13, 18))


async def test_a_replacement_survives_an_edit_made_meanwhile(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    await edit(api, "m8", content="user says a sentence about lamp number 800.")
    await settle(dispatcher, clock)
    assert await texts(api) == ("", "They spoke of #1 #2 #3 #4 #5 #6 #7 #800 #9 #10 #11 #12.")


# --- choosing a version ---


async def test_a_chosen_version_is_followed_by_a_gap_that_is_due(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    chosen = await choose(api, 1)
    assert (chosen["version"], chosen["current"], chosen["in_prompt"]) == (1, True, True)
    assert (chosen["kept_text"], chosen["text"]) == ("", spoke_of(1, 6))
    assert await shown(api) == numbers(1, 6)
    assert await gaps(api) == [[7, 12]]
    assert len(ok(await api.get("/v1/work"), 200)["items"]) == 1
    await settle(dispatcher, clock)
    assert (await shown(api), await gaps(api)) == (numbers(1, 12), [])
    assert [version for version, _, _ in await versions(api)] == [4, 3, 2, 1]


async def test_a_chosen_kept_text_is_carried_on(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await write(api, "It began at #5.")
    await choose(api, 3)
    assert await segment(api) == in_prompt(KEPT, spoke_of(7, 12))
    await append(api, talk(28, 33))
    await settle(dispatcher, clock)
    assert await segment(api) == in_prompt(KEPT, spoke_of(7, 18))


async def test_choosing_cancels_a_fold_that_was_asked_for(
    api: httpx.AsyncClient, kept: None, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    await choose(api, 3)
    calls = len(model.calls)
    await settle(dispatcher, clock)
    assert len(model.calls) == calls
    assert await segment(api) == in_prompt(KEPT, spoke_of(7, 12))


async def test_an_unknown_version_cannot_be_chosen(api: httpx.AsyncClient, kept: None) -> None:
    assert (await choose(api, 9, status=404))["code"] == "version_not_found"
