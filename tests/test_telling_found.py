"""What the state machine of narratives has found."""

import re

import httpx
import pytest

from app.kit.clock import SteppedClock
from app.sweep import Sweep
from tests.conversation_answers import tell
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import Json, append, bury, context, edit, get, ok, put, said

SCENES = {
    "history": {"keep_messages": 2, "grow_messages": 0, "max_messages": 40, "edges": "scenes", "keep_scenes": 1},
    "memos": {"enabled": False},
    "scenes": {"enabled": True, "detect": False, "min_messages": 1, "auto_hide": 1},
}


@pytest.fixture(autouse=True)
async def chat(api: httpx.AsyncClient, model: ScriptedModel) -> None:
    model.otherwise = tell
    await put(api, settings=SCENES)


def words(first: int, last: int) -> list[Json]:
    """Messages that each have a word of their own."""
    return [said(n, content=f"lamp w{n}w") for n in range(first, last + 1)]


async def wait(sweep: Sweep, clock: SteppedClock, times: int = 4) -> None:
    """Let time pass until all is made that can be."""
    for _ in range(times):
        clock.step(40)
        await sweep.drain()


async def set_breaks(api: httpx.AsyncClient, *seqs: int) -> None:
    for seq in seqs:
        ok(await api.post("/v1/chats/c/scenes/break", json={"seq": seq}), 200)


async def told(api: httpx.AsyncClient, name: str) -> list[str]:
    """The words of a segment."""
    found = [one["text"] for one in (await context(api))["segments"] if one["name"] == name]
    return re.findall(r"w\d+w", " ".join(found))


async def hidden(api: httpx.AsyncClient) -> list[int]:
    """What scenes hide."""
    return [one["seq"] for one in (await get(api, "/messages", limit=500))["items"] if one["hidden_by"] == "scenes"]


async def test_a_summary_that_a_person_asked_for_while_summaries_are_off_goes_stale_like_any_other(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    await put(api, status=200, settings={"history": {"edges": "every_message"}, "scenes": {"enabled": False}})
    await append(api, words(1, 6))
    ok(await api.post("/v1/chats/c/summary/regenerate"), 202)
    await wait(sweep, clock)
    assert "w1w" in (await get(api, "/summary"))["text"]
    await bury(api, "m1")
    await wait(sweep, clock)
    assert "w1w" not in (await get(api, "/summary"))["text"]


async def test_deleting_a_stale_version_of_the_recap_does_not_make_true_what_was_built_on_it(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, words(1, 4))
    await set_breaks(api, 2)
    await wait(sweep, clock)
    await set_breaks(api, 4)
    await append(api, words(5, 6))
    await wait(sweep, clock)
    assert await told(api, "recap") == ["w1w", "w2w", "w3w", "w4w"]
    model.otherwise = refuses(503)
    await bury(api, "m1")
    await wait(sweep, clock)
    assert "w1w" not in await told(api, "recap")
    ok(await api.delete("/v1/chats/c/recap/versions/1"), 204)
    assert "w1w" not in await told(api, "recap")


async def test_a_change_behind_a_deleted_version_of_the_recap_makes_stale_what_was_built_on_it(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    await append(api, words(1, 4))
    await set_breaks(api, 2)
    await wait(sweep, clock)
    await set_breaks(api, 4)
    await append(api, words(5, 6))
    await wait(sweep, clock)
    ok(await api.delete("/v1/chats/c/recap/versions/1"), 204)
    await bury(api, "m1")
    await wait(sweep, clock)
    assert await told(api, "recap") == ["w2w", "w3w", "w4w"]


async def test_choosing_a_version_that_was_built_on_a_stale_one_which_is_gone_does_not_make_it_true(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    """The stale one went because another was told in its place, while a later version was not in the chain."""
    await append(api, words(1, 6))
    await set_breaks(api, 2)
    await wait(sweep, clock)
    await set_breaks(api, 4)
    await wait(sweep, clock)
    ok(await api.put("/v1/chats/c/recap/current", json={"version": 1}), 200)
    await bury(api, "m1")
    await wait(sweep, clock)
    versions = (await get(api, "/recap/versions"))["items"]
    second = [one for one in versions if one["version"] == 2]
    if second:
        assert second[0]["stale"]
        ok(await api.put("/v1/chats/c/recap/current", json={"version": 2}), 200)
        assert "w1w" not in await told(api, "recap")


async def test_a_scene_that_is_told_again_below_a_persons_recap_is_hidden_again(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, words(1, 6))
    await set_breaks(api, 2, 4)
    await wait(sweep, clock)
    assert await hidden(api) == [1, 2, 3, 4]
    ok(await api.put("/v1/chats/c/recap", json={"text": "They met."}), 200)
    await wait(sweep, clock)
    model.otherwise = refuses(503)
    await edit(api, "m1", content="lamp w10w")
    await set_breaks(api, 3)
    await set_breaks(api, 3)
    await wait(sweep, clock, times=1)
    model.otherwise = tell
    await wait(sweep, clock)
    assert await hidden(api) == [1, 2, 3, 4]


async def test_a_fork_does_not_know_the_folded_diary_of_what_came_after_it(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    await put(api, status=200, settings={"diary": {"enabled": True, "lines": 4}})
    for n in range(1, 6):
        await append(api, words(n, n))
        ok(await api.post("/v1/chats/c/diary", json={"content": f"I heard w{n}w."}), 201)
    await wait(sweep, clock)
    assert "w4w" in (await get(api, "/diary/folded"))["text"]
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 3}), 201)
    folded = ok(await api.get("/v1/chats/d/diary/folded"), 200)["text"]
    assert "w4w" not in folded
    shown = ok(await api.get("/v1/chats/d/context"), 200)["segments"]
    assert "w4w" not in str([one["text"] for one in shown if one["name"] == "diary"])


async def test_with_the_summary_off_what_a_person_wrote_shows_though_folds_were_built_on_it(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    settings = {"history": {"edges": "folds"}, "scenes": {"enabled": False}}
    await put(api, status=200, settings=settings | {"summary": {"enabled": True, "threshold_messages": 2}})
    ok(await api.put("/v1/chats/c/summary", json={"text": "They had met before p1p."}), 200)
    await append(api, words(1, 20))
    await wait(sweep, clock)
    assert "w1w" in await told(api, "summary")
    await put(api, status=200, settings={"summary": {"enabled": False}})
    segments = (await context(api))["segments"]
    assert "p1p" in str([one["text"] for one in segments if one["name"] == "summary"])


async def test_an_anchor_that_goes_back_into_a_fold_leaves_nothing_untold(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    """Where the edges are not the summary's own, the anchor may go back to where no fold ends."""
    history = {"keep_messages": 4, "grow_messages": 8, "max_messages": 60, "edges": "every_message"}
    settings: Json = {"history": history, "scenes": {"enabled": False}, "summary": {"enabled": True}}
    await put(api, status=200, settings=settings)
    for n in range(1, 14):
        await append(api, words(n, n))
        await wait(sweep, clock)
    assert (await context(api))["history"]["anchor_seq"] == 10
    assert len(await told(api, "summary")) == 9
    await bury(api, "m13")
    await wait(sweep, clock)
    assert (await context(api))["history"]["anchor_seq"] == 9
    assert (await context(api))["memo_window"]["gaps"] == []
    assert len(await told(api, "summary")) == 8


async def test_what_a_forced_cut_left_behind_is_folded_wherever_the_edges_are_from(
    api: httpx.AsyncClient, sweep: Sweep, clock: SteppedClock
) -> None:
    history = {"keep_messages": 4, "grow_messages": 4, "max_messages": 20, "edges": "every_8"}
    settings: Json = {"history": history, "scenes": {"enabled": False}, "summary": {"enabled": True}}
    await put(api, status=200, settings=settings)
    await append(api, words(1, 30))
    anchor_seq = (await context(api))["history"]["anchor_seq"]
    assert anchor_seq > 1, "the history was cut by force"
    await wait(sweep, clock)
    assert (await context(api))["memo_window"]["gaps"] == []
    assert len(await told(api, "summary")) == anchor_seq - 1
