"""What was made by quoting says which answers of the model were refused, after its work item is gone."""

from collections.abc import Awaitable, Callable

import httpx
import pytest

from app.kit.db import Database
from app.kit.ids import chat_key
from tests.consolidation.sample import due_range
from tests.layers.sample import Stage
from tests.scenes.story import BY_HAND, set_break, story_model
from tests.scripted_model import Request
from tests.summary.folds import OWN_FOLDS
from tests.talk import Json, append, edit, get, ok, put, talk

DECLINES = "I'm sorry, but I can't help with that request."
REFUSALS = [{"kind": "declined", "reason": "the model refuses"}] * 2


async def make_memo(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))


async def make_summary(stage: Stage) -> None:
    await put(stage.api, settings=OWN_FOLDS)
    await append(stage.api, talk(1, 21))


async def make_scene(stage: Stage) -> None:
    await put(stage.api, settings=BY_HAND)
    await append(stage.api, talk(1, 16))
    await set_break(stage.api, 12)


async def make_diary(stage: Stage) -> None:
    await put(stage.api, settings={"diary": {"enabled": True, "lines": 2}, "memos": {"enabled": False}})
    for number in range(3):
        body = {"content": f"I lit lamp number {number} for Mira tonight."}
        ok(await stage.api.post("/v1/chats/c/diary", json=body), 201)


async def read_first(api: httpx.AsyncClient, path: str) -> Json:
    """The first item of a list of the chat `c`, or the resource if it is no list."""
    found = await get(api, path)
    first: Json = found["items"][0] if "items" in found else found
    return first


def answer_well(request: Request) -> str:
    """A good answer to each of the prompts."""
    system = str(request["messages"][0]["content"])
    if system.startswith(("You write down", "You keep the running")):
        return str(story_model()(request))
    if "diary" in system:
        return "I remember the lamps, and the sea."
    if "summary" in system:
        return "They spoke of the lamps, one after the other."
    return "【Highlight 1】: (milestone) The user and the assistant spoke of the lamps."


@pytest.mark.parametrize(
    ("make", "path", "again"),
    [
        (make_memo, "/memos", "/memos/{id}/regenerate"),
        (make_summary, "/summary", "/summary/regenerate"),
        (make_scene, "/scenes", "/scenes/{id}/regenerate"),
        (make_scene, "/recap", "/recap/rebuild"),
        (make_diary, "/diary/folded", "/diary/folded/regenerate"),
    ],
)
async def test_a_quoted_memory_has_the_reasons_until_it_is_made(
    make: Callable[[Stage], Awaitable[None]], path: str, again: str, stage: Stage
) -> None:
    await make(stage)
    for _ in range(3):
        await stage.settle(lambda _request: DECLINES)
    quoted = await read_first(stage.api, path)
    assert (quoted["origin"], quoted["refusals"]) == ("extractive", REFUSALS)
    assert ok(await stage.api.get("/v1/work"), 200)["items"] == []
    ok(await stage.api.post(f"/v1/chats/c{again.format(**quoted)}"), 202)
    for _ in range(3):
        await stage.settle(answer_well)
    made = await read_first(stage.api, path)
    assert (made["origin"], made["refusals"]) == ("model", [])


async def test_a_range_that_was_learnt_by_rule_has_the_reasons(stage: Stage, database: Database, tenant: str) -> None:
    await due_range(stage)
    await stage.settle(lambda _request: DECLINES)
    async with database.raw() as connection:
        query = "SELECT origin, refusals->0->>'kind' AS kind FROM consolidations WHERE chat_key = $1"
        (row,) = await connection.fetch(query, chat_key(tenant, "c"))
    assert (row["origin"], row["kind"]) == ("extractive", "declined")


async def test_a_text_of_a_person_has_no_refusals(stage: Stage) -> None:
    await make_memo(stage)
    await stage.settle(lambda _request: DECLINES)
    memo = await read_first(stage.api, "/memos")
    path = f"/v1/chats/c/memos/{memo['id']}"
    assert ok(await stage.api.patch(path, json={"text": "They met."}), 200)["refusals"] == []


async def test_answers_refused_before_a_good_one_are_not_kept(stage: Stage) -> None:
    await make_memo(stage)
    stage.model.script(DECLINES)
    await stage.settle(answer_well)
    memo = await read_first(stage.api, "/memos")
    assert (memo["origin"], memo["refusals"]) == ("model", [])


async def test_only_the_last_reasons_are_kept(stage: Stage) -> None:
    await make_memo(stage)
    await stage.settle(lambda _request: DECLINES)
    await edit(stage.api, "m3", content="The user blows out lamp number 3.")
    stage.model.script("...")
    await stage.settle(lambda _request: DECLINES)
    memo = await read_first(stage.api, "/memos")
    assert [one["kind"] for one in memo["refusals"]] == ["form", "declined", "declined"]
