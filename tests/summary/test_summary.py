"""The rolling summary covers everything before the history and does not overlap it."""

import re

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.work_queue import RETRY_DELAYS_S
from tests.background import settle
from tests.scripted_model import ScriptedModel, refuses
from tests.summary.folds import anchor, counting_fold, gaps, shown, versions
from tests.talk import append, context, cut_off, edit, get, ok, put, soft_delete, talk
from tests.words import numbers, numbers_in

pytestmark = pytest.mark.usefixtures("folding")


async def test_the_cut_and_the_summary_follow_the_fold_at_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 20))
    await settle(dispatcher, clock)
    assert (await get(api, "/summary"))["version"] is None
    await append(api, talk(21, 21))
    assert (await anchor(api), await shown(api)) == (1, [])
    await settle(dispatcher, clock)
    assert (await anchor(api), await shown(api)) == (7, numbers(1, 6))
    for n in range(22, 60):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
        at = await anchor(api)
        assert await shown(api) == numbers(1, at - 1)
        assert 15 <= n - at + 1 <= 20
        assert await gaps(api) == []


async def test_the_segment_has_its_heading(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    (segment,) = [one for one in (await context(api))["segments"] if one["name"] == "summary"]
    assert segment["text"] == "## Recent Conversation Summary\n\nThey spoke of #1 #2 #3 #4 #5 #6."
    assert segment["sources"] == ["summary:1"]
    assert segment["cacheable"]


async def test_an_import_is_folded_in_parts_up_to_its_history(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, talk(1, 200))
    at = await anchor(api)
    assert await gaps(api) == [[1, at - 1]]
    await settle(dispatcher, clock)
    assert await anchor(api) == at
    assert await shown(api) == numbers(1, at - 1)
    assert await gaps(api) == []
    assert len(model.calls) == 5


async def test_without_the_model_the_gap_is_shown(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = "NONE"
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    model.otherwise = lambda _: refuses(400)
    for n in range(22, 60):
        await append(api, talk(n, n))
    assert await anchor(api) > 1
    await settle(dispatcher, clock)
    for delay_s in RETRY_DELAYS_S:
        await settle(dispatcher, clock, delay_s)
    first, last = (await gaps(api))[0]
    assert (first, last) == (7, await anchor(api) - 1)
    model.otherwise = counting_fold
    ok(await api.post("/v1/chats/c/summary/regenerate"), 202)
    await settle(dispatcher, clock)
    assert await gaps(api) == []


async def test_an_edit_before_the_history_refolds_from_there(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    for n in range(1, 51):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    at, calls = await anchor(api), len(model.calls)
    await edit(api, "m14", content="user says a sentence about lamp number 1400.")
    (step,) = [last for _, last, _ in await versions(api) if last and last >= 14][-1:]
    assert await shown(api) == numbers(1, step - 6)
    assert await gaps(api) == [[step - 5, at - 1]]
    await settle(dispatcher, clock)
    assert await shown(api) == [*numbers(1, 13), 1400, *numbers(15, at - 1)]
    assert await anchor(api) == at
    assert not any(stale for _, _, stale in await versions(api))
    assert len(model.calls) == calls + 1


async def test_an_edit_that_is_undone_costs_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, talk(1, 40))
    await settle(dispatcher, clock)
    before, calls = await shown(api), len(model.calls)
    await edit(api, "m3", content="Something else.")
    assert await shown(api) == []
    await edit(api, "m3", content=talk(3, 3)[0]["content"])
    assert await shown(api) == before
    await settle(dispatcher, clock)
    assert len(model.calls) == calls


async def test_a_personal_summary_is_the_next_base_and_may_be_stale(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    written = ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999."}), 200)
    assert (written["edited"], written["last_seq"], written["stale"]) == (True, 6, False)
    assert await shown(api) == [999]
    await append(api, talk(22, 27))
    await settle(dispatcher, clock)
    assert await shown(api) == [999, *numbers(7, 12)]
    await soft_delete(api, "m2")
    await settle(dispatcher, clock)
    assert await shown(api) == [999, *numbers(7, 12)]
    assert [stale for _, _, stale in await versions(api)] == [False, True, True]


async def test_a_summary_written_before_the_first_fold_shows_at_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 4))
    ok(await api.put("/v1/chats/c/summary", json={"text": "They had met before #999."}), 200)
    assert await shown(api) == [999]
    await append(api, talk(5, 21))
    await settle(dispatcher, clock)
    assert await shown(api) == [999, *numbers(1, 6)]


async def test_a_truncation_removes_the_folds_that_covered_its_end(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    for n in range(1, 51):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    await cut_off(api, 16)
    assert await anchor(api) == 1
    assert await shown(api) == []
    assert (await get(api, "/summary"))["last_seq"] == 12
    await append(api, talk(51, 62))
    await settle(dispatcher, clock)
    at = await anchor(api)
    story = [*numbers(1, 15), *numbers(51, 62)]
    assert 1 < at < 62
    assert await shown(api) == [n for n in story if n < at]
    assert await gaps(api) == []


async def test_regenerate_remakes_the_fold_but_no_personal_text(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, talk(1, 20))
    assert ok(await api.post("/v1/chats/c/summary/regenerate"), 409)["code"] == "nothing_to_fold"
    assert ok(await api.get("/v1/work"), 200)["items"] == []
    await append(api, talk(21, 21))
    await settle(dispatcher, clock)
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"instruction": "Tell of the rain."}), 202)
    await settle(dispatcher, clock, 0)
    assert "Tell of the rain." in str(model.calls[-1])
    assert await shown(api) == numbers(1, 6)
    ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999."}), 200)
    refused = ok(await api.post("/v1/chats/c/summary/regenerate"), 409)
    assert refused["code"] == "summary_edited"
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    await settle(dispatcher, clock, 0)
    assert await shown(api) == numbers(1, 6)


async def test_with_other_edges_the_summary_ends_at_the_history(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, status=200, settings={"history": {"edges": "every_8"}, "memos": {"enabled": False}})
    for n in range(1, 60):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
        at = await anchor(api)
        assert await shown(api) == numbers(1, at - 1)
    assert at % 8 == 1
    assert at > 30


async def test_an_excluded_message_is_not_summarised_by_a_new_setting(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    messages = talk(1, 33)
    messages[2]["role"] = "system"
    await append(api, messages)
    for _ in range(2):
        await settle(dispatcher, clock)
    await put(api, status=200, settings={"memos": {"include_system": True}})
    statuses = [one["status"] for one in (await get(api, "/inclusion"))["items"]]
    told_seqs = await shown(api)
    assert 3 not in told_seqs
    assert [seq for seq, status in enumerate(statuses, 1) if status == "summary"] == told_seqs


async def test_without_a_model_a_summary_is_quoted_and_labelled_so(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    said = [f"I promise you number {n}, Kai, by the lighthouse of Rook {n}." for n in range(60)]
    await append(api, [{"role": "user", "content": text} for text in said])
    await settle(quoting_dispatcher, clock)
    summary = await get(api, "/summary")
    assert summary["origin"] == "extractive"
    assert "promise you number" in summary["text"]
    quoted = re.findall("“(.*)”", summary["text"])
    assert len(quoted) == len(summary["text"].splitlines()) > 10
    assert set(quoted) <= set(said)


async def test_a_disabled_summary_shows_only_text_by_a_person(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    await put(api, status=200, settings={"summary": {"enabled": False}})
    assert await shown(api) == []
    ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999."}), 200)
    assert await shown(api) == [999]
    await put(api, status=200, settings={"summary": {"enabled": True}})
    await append(api, talk(22, 60))
    await settle(dispatcher, clock)
    assert numbers_in((await get(api, "/summary"))["kept_text"]) == [999]
    assert (await shown(api))[:2] == [999, 7]
