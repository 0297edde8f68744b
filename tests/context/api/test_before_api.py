"""The option `before`: the context for generating a message of the history again."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle_rounds
from tests.book import ask as ask_book
from tests.context.api.chats import CHAT
from tests.scenes.story import BY_HAND, set_break, story_model
from tests.scripted_model import ScriptedModel
from tests.statements import watched
from tests.talk import CALL, FORMATS, Json, add_swipe, append, context, edit, ok, put, said, soft_delete, talk
from tests.words import numbers_in


def of_segment(found: Json, name: str) -> str:
    return next((str(one["text"]) for one in found["segments"] if one["name"] == name), "")


@pytest.mark.parametrize("preset", ["memo", "diary", "agent", "companion"])
async def test_before_gives_the_context_that_the_reply_was_made_from(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, preset: str
) -> None:
    # What is recalled depends on the turns before, which a later context does not know.
    await put(api, **CHAT, settings={"preset": preset, "recall": {"mode": "off"}})
    then: dict[str, tuple[Json, Json]] = {}
    for n in range(1, 81):
        await settle_rounds(dispatcher, clock, rounds=2)
        then[f"m{n}"] = await context(api), await context(api, format="anthropic")
        await append(api, talk(n, n))
    await settle_rounds(dispatcher, clock)
    anchor_seq = (await context(api))["history"]["anchor_seq"]
    same = [key for key, (found, _) in then.items() if found["history"]["anchor_seq"] == anchor_seq]
    assert len(same) >= 2
    for message_id in same:
        again = await context(api, before=message_id), await context(api, format="anthropic", before=message_id)
        assert again == then[message_id]


async def test_swipes_and_later_edits_do_not_matter(api: httpx.AsyncClient) -> None:
    await put(api, **CHAT)
    await append(api, talk(1, 5))
    expected = await context(api)
    await append(api, talk(6, 9))
    await add_swipe(api, "m6", "Another answer.")
    await edit(api, "m7", content="Something else.")
    await soft_delete(api, "m8")
    assert await context(api, before="m6") == expected
    answer = await api.post("/v1/chats/c/context", json={"before": "m6", "segments": []})
    assert ok(answer, 200) == expected


async def test_a_memory_of_a_later_message_is_left_out(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 9))
    for after_seq, text in ((3, "They have met before."), (6, "He has forgiven her.")):
        await ask_book(api, "POST", "", 201, {"text": text, "after_seq": after_seq})
    memos = of_segment(await context(api, before="m6"), "memos")
    assert "They have met before." in memos
    assert "He has forgiven her." not in memos
    assert "He has forgiven her." in of_segment(await context(api, before="m7"), "memos")


@pytest.fixture
async def three_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    """A chat of 42 messages whose scenes end at 10, 20 and 30, each folded into the recap; none is cut off."""
    model.otherwise = story_model()
    await put(api, settings=BY_HAND | {"history": {"keep_messages": 50}})
    for end in (10, 20, 30):
        await append(api, talk(end - 9, end))
        await set_break(api, end)
        await settle_rounds(dispatcher, clock, rounds=3)
    await append(api, talk(31, 42))


@pytest.mark.parametrize(("before", "told"), [(42, 30), (31, 30), (30, 20), (21, 20), (20, 10), (11, 10)])
async def test_the_recap_is_the_one_before_the_message(
    api: httpx.AsyncClient, three_scenes: None, before: int, told: int
) -> None:
    shown = of_segment(await context(api), "recap")
    assert numbers_in(shown) == list(range(1, 31))
    recap = of_segment(await context(api, before=f"m{before}"), "recap")
    assert numbers_in(recap) == list(range(1, told + 1))


async def test_without_an_older_recap_no_recap_is_shown(api: httpx.AsyncClient, three_scenes: None) -> None:
    found = await context(api, before="m10")
    assert of_segment(found, "recap") == ""
    assert found["history"]["messages"] == 9


async def test_a_stale_older_recap_is_not_shown(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, three_scenes: None
) -> None:
    ok(await api.put("/v1/chats/c/recap", json={"text": "# Outcomes\n- A person wrote #99."}), 200)
    await settle_rounds(dispatcher, clock)
    await edit(api, "m4", content="Nothing happened.")
    recap = of_segment(await context(api, before="m21"), "recap")
    assert recap == ""
    assert numbers_in(of_segment(await context(api, before="m31"), "recap"))[0] == 99


async def test_an_unanswered_call_before_the_message_is_left_out(api: httpx.AsyncClient) -> None:
    calling = said(2, content="", tool_calls=[CALL])
    result = {"id": "m3", "role": "tool", "tool_call_id": CALL["id"], "content": "Nothing."}
    await append(api, [said(1), calling, result, said(4)])
    assert (await context(api, before="m3"))["history"]["messages"] == 1
    assert (await context(api, before="m4"))["history"]["messages"] == 3


@pytest.mark.parametrize("name", FORMATS)
async def test_the_first_message_can_be_made_again(api: httpx.AsyncClient, name: str) -> None:
    await put(api, **CHAT)
    await append(api, [said(2), said(3)])
    found = await context(api, before="m2", format=name)
    history = {"anchor_seq": 1, "last_seq": 0, "messages": 0, "last_cut": None}
    assert found["history"] == history
    assert of_segment(found, "character")


async def test_a_message_before_the_anchor_is_refused(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 60))
    await settle_rounds(dispatcher, clock)
    await append(api, talk(61, 61))
    anchor_seq = (await context(api))["history"]["anchor_seq"]
    assert anchor_seq > 1
    assert (await context(api, 409, before=f"m{anchor_seq - 1}"))["code"] == "before_history"
    assert (await context(api, before=f"m{anchor_seq}"))["history"]["messages"] == 0


async def test_an_unknown_or_deleted_message_is_a_404(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    await soft_delete(api, "m2")
    for message_id in ("m2", "m9"):
        assert (await context(api, 404, before=message_id))["code"] == "message_not_found"


async def test_a_draft_before_a_message_is_refused(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    refused: Any = await context(api, 422, before="m2", draft="Hm?")
    assert [one["loc"][-1] for one in refused["errors"]] == ["draft"]


async def test_a_context_before_a_message_is_one_statement(
    api: httpx.AsyncClient, app: FastAPI, three_scenes: None
) -> None:
    async with watched(app.state.database) as seen:
        await context(api, before="m20")
    assert len(seen.asked) == 1


async def test_the_entity_tag_differs_between_messages(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 4))
    queries: list[Json] = [{}, {"before": "m2"}, {"before": "m3"}]
    answers = [await api.get("/v1/chats/c/context", params=query) for query in queries]
    assert len({answer.headers["etag"] for answer in answers}) == 3
