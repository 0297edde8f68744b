"""Auto-hide: what is out of sight, what never is, and that a person's hiding is another matter."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from tests.background import settle_rounds
from tests.book import due_rows
from tests.scenes.story import BY_HAND, ask, hidden, scenes, set_break, shown, story_model
from tests.scripted_model import ScriptedModel, refuses
from tests.talk import CALL, append, context, cut_off, edit, get, hide, put, said, soft_delete, talk
from tests.words import numbers

SHORT = BY_HAND | {"history": {"keep_messages": 1, "grow_messages": 15}}
"""Auto-hide leaves at least `keep_messages` in sight; in these stories the last scenes are short."""


async def make_four_scenes(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, **settings: object
) -> None:
    """Four scenes of four messages and an open one, all with recaps."""
    model.otherwise = story_model()
    await put(api, settings=SHORT | {"scenes": {"detect": False, **settings}})
    await append(api, talk(1, 18))
    for seq in (4, 8, 12, 16):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)


async def test_all_but_the_last_scenes_are_hidden_the_open_one_counts(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    assert await hidden(api) == numbers(1, 12)


async def test_a_new_scene_hides_the_oldest_visible_one(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    await set_break(api, 18)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 12)  # no message follows the break yet
    await append(api, talk(19, 19))
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 16)


async def test_calls_without_results_are_not_among_the_kept(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    await put(api, settings={"history": {"keep_messages": 7}}, status=200)
    await append(api, [said(19, role="assistant", content="", tool_calls=[CALL])])
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 8)
    await append(api, talk(20, 20))
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 12)


async def test_a_new_message_makes_the_open_scene_count_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    for message in ("m17", "m18"):
        await soft_delete(api, message)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 8)
    await append(api, talk(19, 19))
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 12)


async def test_a_scene_that_the_recap_does_not_cover_is_not_hidden(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = refuses(500)
    await put(api, settings=SHORT)
    await append(api, talk(1, 18))
    for seq in (4, 8, 12, 16):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == []
    model.otherwise = story_model()
    clock.step(600)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 12)
    await put(api, status=200, settings={"scenes": {"recap": {"exclude_latest": 3}}})
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 4)


async def test_a_stale_recap_shows_its_scenes_until_it_is_rebuilt(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    await ask(api, "PATCH", "/messages/m6", 200, {"content": "Something about lamp number 77."})
    model.otherwise = refuses(500)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == []
    model.otherwise = story_model()
    clock.step(600)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 12)


async def test_another_number_hides_or_shows_accordingly(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    for number, expected in ((3, numbers(1, 8)), (0, numbers(1, 16)), (-1, []), (1, numbers(1, 16)), (50, [])):
        await put(api, status=200, settings={"scenes": {"auto_hide": number}})
        await settle_rounds(dispatcher, clock)
        assert await hidden(api) == expected


@pytest.mark.parametrize("words", [{"title": "The first lamps"}, {"recap": "They spoke of #1."}])
async def test_an_edited_scene_is_shown_until_the_recap_covers_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, words: dict[str, object]
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    model.otherwise = refuses(500)
    first = (await scenes(api))[0]
    await ask(api, "PATCH", f"/scenes/{first['id']}", 200, words)
    await settle_rounds(dispatcher, clock)
    assert (await shown(api), await hidden(api)) == ([], [])
    model.otherwise = story_model()
    clock.step(600)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 12)


async def test_hidden_messages_without_a_valid_recap_are_a_gap(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    batches = {"enabled": True, "every_messages": 64}
    unedged = {"memos": batches, "history": {"keep_messages": 4, "edges": "batches"}}
    await put(api, settings={**SHORT, **unedged})  # no edge lies behind what is hidden
    await append(api, talk(1, 20))
    for seq in (8, 14):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    assert (await get(api, ""))["anchor_seq"] == 1
    assert (await context(api))["memo_window"]["gaps"] == []
    await edit(api, "m5", content="Something about lamp number 77.")
    assert (await shown(api), await hidden(api)) == ([], numbers(1, 8))
    assert (await context(api))["memo_window"]["gaps"] == [[1, 8]]
    await settle_rounds(dispatcher, clock)
    assert (await context(api))["memo_window"]["gaps"] == []


async def test_a_layer_that_is_switched_off_hides_nothing(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    await put(api, status=200, settings={"scenes": {"enabled": False}})
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == []


async def test_messages_hidden_by_a_person_stay_hidden_by_them(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=SHORT)
    await append(api, talk(1, 18))
    await hide(api, (2, 3))
    for seq in (4, 8, 12, 16):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == [1, *numbers(4, 12)]
    assert await hidden(api, by="user") == [2, 3]
    await put(api, status=200, settings={"scenes": {"auto_hide": -1}})
    await settle_rounds(dispatcher, clock)
    assert (await hidden(api), await hidden(api, by="user")) == ([], [2, 3])


async def test_auto_hide_skips_messages_shown_again_by_a_person(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    await edit(api, "m2", hidden=False)
    await hide(api, (6, 7), hidden=False)
    await set_break(api, 18)
    await append(api, talk(19, 20))
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == [seq for seq in numbers(1, 16) if seq not in (2, 6, 7)]


async def test_null_lets_auto_hide_decide_again(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    await edit(api, "m2", hidden=False)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == [1, *numbers(3, 12)]
    await edit(api, "m2", hidden=None)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 12)


async def test_a_message_hidden_early_and_shown_again_is_left_alone(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = story_model()
    await put(api, settings=SHORT)
    await append(api, talk(1, 18))
    await hide(api, (2, 3))
    for seq in (4, 8, 12, 16):
        await set_break(api, seq)
    await settle_rounds(dispatcher, clock)
    await hide(api, (2, 3), hidden=False)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == [1, *numbers(4, 12)]
    assert await hidden(api, by="user") == []


async def test_changes_in_bulk_are_one_refresh(
    api: httpx.AsyncClient,
    database: Database,
    tenant: str,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    for number in (3, 1, 0):
        await put(api, status=200, settings={"scenes": {"auto_hide": number}})
        clock.step(0.5)
        assert await dispatcher.drain() == 0
    (row,) = await due_rows(database, tenant)
    assert row["key"] == "hide"
    clock.step(1)
    assert await dispatcher.drain() == 1
    assert await hidden(api) == numbers(1, 16)


async def test_hidden_messages_are_counted_out_of_the_history(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    sent = (await ask(api, "GET", "/context", 200))["history"]["messages"]
    assert sent == 6


async def test_cutting_off_the_end_shows_what_are_the_last_scenes_now(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await make_four_scenes(api, dispatcher, clock, model)
    await cut_off(api, 11)
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == numbers(1, 4)
    await soft_delete(api, "m9", "m10")
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == []
