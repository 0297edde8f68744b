"""The running recap after its versions were deleted, chosen or written, while scenes change and models are away."""

from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle, settle_rounds
from tests.oracle.answers import echo
from tests.scenes.story import hidden, lift_break, set_break
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import append, edit, get, ok, put, soft_delete
from tests.words import segment_words, words

SCENES: dict[str, Any] = {
    "history": {"keep_messages": 2, "grow_messages": 0, "max_messages": 40, "edges": "scenes", "keep_scenes": 1},
    "memos": {"enabled": False},
    "scenes": {"enabled": True, "detect": False, "min_messages": 1, "auto_hide": 1},
}


@pytest.fixture(autouse=True)
async def chat(api: httpx.AsyncClient, model: ScriptedModel) -> None:
    model.otherwise = echo
    await put(api, settings=SCENES)


async def test_deleting_a_stale_version_makes_no_later_one_valid(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, words(1, 4))
    await set_break(api, 2)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    await set_break(api, 4)
    await append(api, words(5, 6))
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert await segment_words(api, "recap") == ["w1w", "w2w", "w3w", "w4w"]
    model.otherwise = refuses(503)
    await soft_delete(api, "m1")
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert "w1w" not in await segment_words(api, "recap")
    ok(await api.delete("/v1/chats/c/recap/versions/1"), 204)
    assert "w1w" not in await segment_words(api, "recap")


async def test_a_change_below_a_deleted_version_makes_later_stale(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, words(1, 4))
    await set_break(api, 2)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    await set_break(api, 4)
    await append(api, words(5, 6))
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    ok(await api.delete("/v1/chats/c/recap/versions/1"), 204)
    await soft_delete(api, "m1")
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert await segment_words(api, "recap") == ["w2w", "w3w", "w4w"]


async def test_a_version_on_a_deleted_stale_one_stays_invalid(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    """The stale version was replaced by another one while a later version was not in the chain."""
    await append(api, words(1, 6))
    await set_break(api, 2)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    await set_break(api, 4)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    ok(await api.put("/v1/chats/c/recap/current", json={"version": 1}), 200)
    await soft_delete(api, "m1")
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    versions = (await get(api, "/recap/versions"))["items"]
    second = [one for one in versions if one["version"] == 2]
    if second:
        assert second[0]["stale"]
        ok(await api.put("/v1/chats/c/recap/current", json={"version": 2}), 200)
        assert "w1w" not in await segment_words(api, "recap")


async def test_a_remade_scene_below_a_personal_recap_is_hidden_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, words(1, 6))
    await set_break(api, 2)
    await set_break(api, 4)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert await hidden(api) == [1, 2, 3, 4]
    ok(await api.put("/v1/chats/c/recap", json={"text": "They met."}), 200)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    model.otherwise = refuses(503)
    await edit(api, "m1", content="lamp w10w")
    await set_break(api, 3)
    await lift_break(api, 3)
    await settle(dispatcher, clock, 40)
    model.otherwise = echo
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    assert await hidden(api) == [1, 2, 3, 4]


async def test_a_chosen_version_gets_scenes_that_no_version_has(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    """More scenes than one fold takes are in newer versions, and one more scene is in none."""
    await append(api, words(1, 22))
    await set_break(api, 2)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    for seq in range(4, 20, 2):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock, rounds=4, wait_s=40)
    await set_break(api, 20)
    await settle(dispatcher, clock, 6)
    assert (await get(api, "/scenes"))["items"][-2]["status"] == "ready"
    assert len(await segment_words(api, "recap")) == 18
    ok(await api.put("/v1/chats/c/recap/current", json={"version": 1}), 200)
    await settle_rounds(dispatcher, clock, rounds=6, wait_s=40)
    assert len(await segment_words(api, "recap")) == 20
