"""A model that does not do its task, in every layer: it is asked again with what was wrong, then done without."""

import asyncio
import subprocess
import sys

import httpx
import pytest

from app.kit.db import Database
from app.kit.ids import chat_key
from app.kit.work_queue import MAX_ATTEMPTS
from tests.background import settle
from tests.book import ask, book, change
from tests.layers.sample import LastAttempt, Stage
from tests.layers.samples import SAMPLES
from tests.scripted_model import refuses
from tests.summary.folds import OWN_FOLDS
from tests.talk import Json, append, edit, get, ok, put, talk

STORY = (
    "*I take your hand and pull you up the stairs.* You laugh, and I know that you will follow me anywhere.\n"
    "What do you do?"
)
DECLINES = "I'm sorry, but I can't help with that request."
MEMO = "【Highlight 1】: (milestone) The user and the assistant spoke of the lamps."
CASES: dict[tuple[str, str], LastAttempt] = {
    (layer, prefix): case for layer, sample in SAMPLES.items() for prefix, case in sample.last_attempts.items()
}
"""How the work of each job becomes due, by layer and prefix."""


async def keep_due(database: Database, tenant: str, layer: str, key: str) -> None:
    """Delete all work of the chat but that of one job."""
    async with database.raw() as connection:
        await connection.execute(
            "DELETE FROM work WHERE owner_key = $1 AND NOT (layer = $2 AND key LIKE $3)",
            *(chat_key(tenant, "c"), layer, key),
        )


async def work(api: httpx.AsyncClient) -> list[Json]:
    """The background work of the chat."""
    items: list[Json] = ok(await api.get("/v1/work", params={"chat_id": "c"}), 200)["items"]
    return items


@pytest.mark.parametrize(("layer", "prefix"), sorted(CASES), ids=lambda part: part or "*")
async def test_every_job_asks_three_times_with_what_was_wrong(
    layer: str, prefix: str, stage: Stage, database: Database, tenant: str
) -> None:
    case = CASES[layer, prefix]
    await case.make_due(stage)
    await keep_due(database, tenant, layer, case.key)
    before = len(stage.model.calls)
    await stage.settle(lambda _request: STORY)
    texts, calls = stage.model.questions[before:], stage.model.requests[before:]
    usual = calls[0]["temperature"]
    assert [call["temperature"] > usual for call in calls[:3]] == [False, False, True]
    assert "was refused" not in texts[0]
    assert all("An earlier answer to this request was refused: the answer" in text for text in texts[1:3])
    assert "your hand" not in texts[1]
    state = (await stage.api.get("/v1/chats/c/state")).text
    assert "take your hand" not in state
    errors = [(item["status"], item["error"]) for item in await work(stage.api) if item["error"]]
    if prefix in ("write:", "entry:"):  # an entry of a diary is never quoted, so its work has failed
        assert [status for status, _ in errors] == ["failed"]
        assert errors[0][1].startswith("no answer of the model could be used: the answer goes on with the story")
    else:
        assert errors == []


async def test_after_three_refused_answers_a_memo_is_quoted(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))
    await stage.settle(lambda _request: STORY)
    (memo,) = await book(stage.api)
    assert (memo["status"], memo["origin"], memo["model"], memo["stale"]) == ("ready", "extractive", None, False)
    assert "lamp number" in memo["text"]
    assert len(stage.model.calls) == 3
    stage.model.otherwise = MEMO
    await ask(stage.api, "POST", f"/{memo['id']}/regenerate", 202, {})
    await settle(stage.dispatcher, stage.clock)
    (memo,) = await book(stage.api)
    assert (memo["origin"], memo["highlights"][0]["text"]) == (
        "model",
        "The user and the assistant spoke of the lamps.",
    )
    assert len(stage.model.calls) == 4


async def test_a_model_that_declines_twice_is_asked_no_more(stage: Stage) -> None:
    await put(stage.api, settings=OWN_FOLDS)
    await append(stage.api, talk(1, 21))
    await stage.settle(lambda _request: DECLINES)
    summary = await get(stage.api, "/summary")
    assert (summary["origin"], summary["model"], summary["stale"]) == ("extractive", None, False)
    assert len(stage.model.calls) == 2
    assert "refused: the model refuses" in stage.model.questions[1]


async def test_the_log_says_why_a_memory_is_quoted(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    await append(stage.api, talk(1, 8))
    stage.model.script(STORY, DECLINES, DECLINES)
    await settle(stage.dispatcher, stage.clock)
    assert [memo["origin"] for memo in await book(stage.api)] == ["extractive"]
    (line,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert line.getMessage() == (
        "the model is not asked again for memos; its answers were refused: form (the answer is prose that does not "
        "mark its highlights); declined (the model refuses); declined (the model refuses)"
    )


async def test_a_story_is_never_stored_as_a_summary(stage: Stage) -> None:
    await put(stage.api, settings=OWN_FOLDS)
    await append(stage.api, talk(1, 21))
    stage.model.script(STORY, "They spoke of the lamps, one after another.")
    await settle(stage.dispatcher, stage.clock)
    summary = await get(stage.api, "/summary")
    assert (summary["origin"], summary["text"]) == ("model", "They spoke of the lamps, one after another.")


async def test_a_summary_may_shrink_only_at_the_second_try(stage: Stage) -> None:
    await put(stage.api, settings=OWN_FOLDS)
    long = " ".join(f"On day {n} they mended the lamp of house {n} and talked until dawn." for n in range(1, 12))
    ok(await stage.api.put("/v1/chats/c/summary", json={"text": long, "keep": False}), 200)
    await append(stage.api, talk(1, 21))
    short = "They mended the lamps of eleven houses and talked about them until dawn, day after day."
    stage.model.script(short, short)
    await settle(stage.dispatcher, stage.clock)
    assert "keeps less than half of the former text" in stage.model.questions[1]
    assert len(stage.model.calls) == 2
    assert (await get(stage.api, "/summary"))["text"].endswith(short)


async def test_a_summary_that_drops_the_former_text_is_quoted(stage: Stage) -> None:
    await put(stage.api, settings=OWN_FOLDS)
    former = (
        "Mira found Kai's letter in the lamp room and understood why he had stayed. She forgave him, hesitantly, and "
        "felt lighter for it. Kai admitted that he had let the lamp go out on the night her brother drowned. They "
        "promised each other to sail to the islands in June, and Mira kept the brass compass that he gave her."
    )
    ok(await stage.api.put("/v1/chats/c/summary", json={"text": former, "keep": False}), 200)
    await append(stage.api, talk(1, 21))
    story = (
        "He took a slow breath and looked out over the water. Someone stepped closer, fingers brushing a sleeve, and "
        "for a long moment neither spoke. Then the world narrowed to the warmth of a mouth. When they parted she was "
        "smiling, and the first stars had come out above the roofs of the town."
    )
    await stage.settle(lambda _request: story)
    summary = await get(stage.api, "/summary")
    assert (summary["origin"], len(stage.model.calls)) == ("extractive", 3)
    assert "compass" in summary["text"]
    assert "slow breath" not in summary["text"]


async def test_a_story_is_refused_even_with_a_wish(stage: Stage) -> None:
    await put(stage.api, settings=OWN_FOLDS)
    await append(stage.api, talk(1, 21))
    await stage.settle(lambda _request: "They spoke of the lamps, one after another.")
    calls = len(stage.model.calls)
    ok(await stage.api.post("/v1/chats/c/summary/regenerate", json={"instruction": "mention the ring"}), 202)
    story = '"Then stay with me tonight," I say, and you let me hold you until the rain has passed.'
    await stage.settle(lambda _request: story)
    summary = await get(stage.api, "/summary")
    assert (summary["origin"], len(stage.model.calls) - calls) == ("extractive", 3)


async def test_refused_answers_are_kept_with_the_work(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))
    stage.model.script(DECLINES, refuses(503))
    await settle(stage.dispatcher, stage.clock)
    (item,) = await work(stage.api)
    assert item["refusals"] == [{"kind": "declined", "reason": "the model refuses"}]
    assert (item["attempts"], item["error"]) == (1, "the model server fails (503)")
    single = ok(await stage.api.get(f"/v1/work/{item['id']}"), 200)
    assert single["refusals"] == item["refusals"]
    calls = len(stage.model.calls)
    stage.model.script(DECLINES, MEMO)
    await settle(stage.dispatcher, stage.clock)
    (memo,) = await book(stage.api)
    assert (memo["origin"], len(stage.model.calls)) == ("extractive", calls + 1)
    assert "refused: the model refuses" in stage.model.questions[-1]


async def test_a_new_reason_forgets_the_refused_answers(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))
    stage.model.script(DECLINES, refuses(400))
    await settle(stage.dispatcher, stage.clock)
    (item,) = await work(stage.api)
    assert len(item["refusals"]) == 1
    await edit(stage.api, "m3", content="The user blows out lamp number 3.")
    assert [one["refusals"] for one in await work(stage.api)] == [[]]
    stage.model.script(DECLINES, MEMO)
    await settle(stage.dispatcher, stage.clock)
    assert [memo["origin"] for memo in await book(stage.api)] == ["model"]


async def test_a_retry_by_hand_forgets_the_refused_answers(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))
    stage.model.script(DECLINES)
    stage.model.otherwise = refuses(400)
    for _ in range(MAX_ATTEMPTS):
        await settle(stage.dispatcher, stage.clock, wait_s=3_600)
    (item,) = await work(stage.api)
    assert (item["status"], len(item["refusals"])) == ("failed", 1)
    ok(await stage.api.post(f"/v1/work/{item['id']}/retry"), 202)
    assert [one["refusals"] for one in await work(stage.api)] == [[]]


async def test_a_worker_that_dies_between_answers_loses_no_count(stage: Stage, database: Database, tenant: str) -> None:
    await append(stage.api, talk(1, 8))
    stage.clock.step(2)
    stage.model.script(DECLINES)
    first, second = stage.model.hold(1), stage.model.hold(1)
    running = asyncio.create_task(stage.dispatcher.run())
    await first.reached()
    first.release()
    await second.reached()  # the first answer was stored before the second request
    assert [one["refusals"] for one in await work(stage.api)] == [[{"kind": "declined", "reason": "the model refuses"}]]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    second.release()
    await change(database, tenant, "work", "lease = NULL, leased_until = NULL")
    calls = len(stage.model.calls)
    stage.model.otherwise = DECLINES
    await stage.dispatcher.drain()
    assert [memo["origin"] for memo in await book(stage.api)] == ["extractive"]
    assert len(stage.model.calls) == calls + 1


async def test_an_edit_between_two_answers_ends_the_attempt(stage: Stage) -> None:
    await append(stage.api, talk(1, 8))
    stage.clock.step(2)
    stage.model.script(STORY)
    gate = stage.model.hold(1)
    draining = asyncio.create_task(stage.dispatcher.drain())
    await gate.reached()
    await edit(stage.api, "m3", content="The user blows out lamp number 3.")
    gate.release()
    await draining
    assert len(stage.model.calls) == 1
    (item,) = await work(stage.api)
    assert (item["status"], item["refusals"], item["error"]) == ("due", [], None)


async def test_a_requests_process_loads_no_language_model() -> None:
    code = "import sys, app.main; sys.exit(bool({'numpy', 'py3langid'} & set(sys.modules)))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.DEVNULL)
    assert await process.wait() == 0
