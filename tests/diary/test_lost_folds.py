"""A fold that becomes stale leaves the held diary at once, and returns when it is valid again or replaced."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle
from tests.diary.diaries import keep_diary, prompts, save
from tests.oracle.answers import echo
from tests.scripted_model import ScriptedModel
from tests.talk import append, edit, put, said, talk

FOLDED = ["w1w", "w2w", "w3w"]


async def hold_a_fold(api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock) -> str:
    """Entries of five replies, the older ones folded, and a cut since; return the segment `diary`."""
    model.otherwise = echo
    await keep_diary(api, lines=6)
    await put(api, status=200, settings={"history": {"keep_messages": 2, "grow_messages": 8, "edges": "every_message"}})
    for n in range(1, 6):
        await append(api, talk(2 * n - 1, 2 * n))
        await save(api, f"I heard w{n}w.")
    await settle(dispatcher, clock)
    await append(api, talk(11, 12))
    held, _ = await prompts(api)
    assert [word for word in FOLDED if word in held] == FOLDED
    return held


async def test_an_undone_edit_restores_the_same_diary(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    held = await hold_a_fold(api, dispatcher, model, clock)
    await edit(api, "m2", content="No.")
    assert not [word for word in FOLDED if word in (await prompts(api))[0]]
    await edit(api, "m4", content="Nor that.")
    await edit(api, "m2", content=said(2)["content"])
    assert (await prompts(api))[0] != held
    await edit(api, "m4", content=said(4)["content"])
    assert (await prompts(api))[0] == held
    await settle(dispatcher, clock)
    assert (await prompts(api))[0] == held


async def test_the_fold_that_replaces_a_lost_one_shows_at_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    held = await hold_a_fold(api, dispatcher, model, clock)
    await edit(api, "m4", content="No.")
    await settle(dispatcher, clock)
    replaced, _ = await prompts(api)
    assert [word for word in FOLDED if word in replaced] == ["w1w", "w3w"]
    await edit(api, "m4", content=said(4)["content"])
    await settle(dispatcher, clock)
    assert [word for word in FOLDED if word in (await prompts(api))[0]] == FOLDED
    assert held.count("w2w") == 1


async def test_a_further_fold_still_waits_for_the_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await hold_a_fold(api, dispatcher, model, clock)
    await edit(api, "m4", content="No.")
    await settle(dispatcher, clock)
    replaced, _ = await prompts(api)
    for n in range(6, 9):
        await save(api, f"I heard w{n}w.")
    await settle(dispatcher, clock)
    assert (await prompts(api))[0] == replaced


async def test_a_cut_before_the_replacement_goes_on_waiting(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await hold_a_fold(api, dispatcher, model, clock)
    await edit(api, "m4", content="No.")
    await append(api, talk(13, 22))
    await settle(dispatcher, clock)
    assert [word for word in FOLDED if word in (await prompts(api))[0]] == ["w1w", "w3w"]
