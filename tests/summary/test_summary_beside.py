"""The summary where the edges are another layer's, where folds fail, and where people write, delete and fork."""

import asyncio

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.work_queue import RETRY_DELAYS_S
from tests.background import settle, while_the_model_is_asked
from tests.scripted_model import Request, ScriptedModel, refuses
from tests.summary.folds import OWN_FOLDS, anchor, counting_fold, gaps, shown
from tests.talk import append, context, cut_off, edit, get, ok, put, soft_delete, talk
from tests.words import numbers, numbers_in

BESIDE_MEMOS = {"summary": {"enabled": True}}
MEMO = "【Highlight 1】: (keepsake) Kai gave Mira a lamp."


def both(request: Request) -> str:
    """A memo, or a summary that counts."""
    return counting_fold(request) if "<former>" in str(request["messages"][-1]["content"]) else MEMO


def is_fold(request: Request) -> bool:
    return "<former>" in str(request)


@pytest.fixture(autouse=True)
async def scripted(model: ScriptedModel, dispatcher: Dispatcher) -> None:
    model.otherwise = both


async def test_beside_memos_the_summary_ends_before_the_history(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=BESIDE_MEMOS)
    for n in range(1, 80):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
        assert await shown(api) == numbers(1, await anchor(api) - 1)
        assert await gaps(api) == []
    assert await anchor(api) == 49
    assert sum(is_fold(call.body) for call in model.calls) == 3


async def test_beside_memos_an_import_is_folded_too(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=BESIDE_MEMOS)
    await append(api, talk(1, 200))
    await settle(dispatcher, clock)
    assert await shown(api) == numbers(1, await anchor(api) - 1)
    assert await gaps(api) == []


async def test_a_later_cut_includes_messages_of_a_failed_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=BESIDE_MEMOS)
    model.otherwise = lambda request: refuses(400) if is_fold(request) else MEMO
    await append(api, talk(1, 33))
    await settle(dispatcher, clock)
    for delay_s in RETRY_DELAYS_S:
        await settle(dispatcher, clock, delay_s)
    assert (await anchor(api), await shown(api)) == (17, [])
    model.otherwise = both
    await append(api, talk(34, 60))
    await settle(dispatcher, clock)
    assert await shown(api) == numbers(1, await anchor(api) - 1)
    assert await gaps(api) == []


async def test_a_cut_that_waits_asks_the_model_for_each_fold_once(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=BESIDE_MEMOS)
    await append(api, talk(1, 47))
    await settle(dispatcher, clock)
    folds = [call for call in model.calls if is_fold(call.body)]
    assert await shown(api) == numbers(1, await anchor(api) - 1)
    assert len(folds) == len((await get(api, "/summary/versions"))["items"])


async def test_a_wish_is_kept_until_a_fold_uses_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=BESIDE_MEMOS)
    await append(api, talk(1, 33))
    await settle(dispatcher, clock)
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"instruction": "Tell of the rain."}), 202)
    await append(api, talk(34, 49))
    await settle(dispatcher, clock)
    assert any("Tell of the rain." in str(call) for call in model.calls)
    assert await shown(api) == numbers(1, await anchor(api) - 1)


async def test_every_fold_of_a_long_range_receives_the_wish(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=OWN_FOLDS)
    await append(api, talk(1, 200))
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"instruction": "Tell of the rain."}), 202)
    await settle(dispatcher, clock)
    assert len(model.calls) > 3
    assert all("Tell of the rain." in str(call.body) for call in model.calls)


async def test_regenerate_does_not_build_on_a_stale_version(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=OWN_FOLDS)
    for n in range(1, 34):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999."}), 200)
    await soft_delete(api, "m3")
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True, "instruction": "Rain."}), 202)
    calls = len(model.calls)
    await settle(dispatcher, clock)
    assert all("#3 " not in str(call) for call in model.calls[calls:])
    assert "Rain." in str(model.calls[calls])
    assert await shown(api) == [1, 2, *numbers(4, await anchor(api) - 1)]


async def test_a_personal_summary_shows_while_disabled_after_folds(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=OWN_FOLDS)
    await append(api, talk(1, 21))
    await settle(dispatcher, clock)
    ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999."}), 200)
    for n in range(22, 45):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    await put(api, status=200, settings={"summary": {"enabled": False}})
    assert await shown(api) == [999]
    assert (await get(api, "/summary"))["kept_text"] == "It began at #999."


async def test_a_fork_keeps_the_newest_version_within_its_range(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=OWN_FOLDS)
    for n in range(1, 60):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f", "at_seq": 30}), 201)
    found = ok(await api.get("/v1/chats/f/summary"), 200)
    assert numbers_in(found["text"]) == numbers(1, 30)
    assert found["current"]


async def test_many_long_messages_are_folded_in_parts_that_fit(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=OWN_FOLDS)
    names = "Every one of these words has to be told, said Kai. " * 400
    long = [{**one, "content": f"{one['content']} {names}"} for one in talk(1, 60)]
    await append(api, long)
    await settle(dispatcher, clock)
    segments = [one["name"] for one in (await context(api, max_tokens=2_000_000))["segments"]]
    assert "summary" in segments
    assert await gaps(api) == []


async def test_an_edit_that_shows_a_hidden_message_is_summarised(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    scenes = {"enabled": True, "detect": False, "auto_hide": 1}
    await put(api, settings={**OWN_FOLDS, "scenes": scenes})
    await append(api, talk(1, 21))
    ok(await api.put("/v1/chats/c/scenes/breaks/6"), 201)
    for _ in range(4):
        await settle(dispatcher, clock, 40)
    (first,) = [one for one in (await get(api, "/messages"))["items"] if one["seq"] == 1]
    assert first["hidden_by"] == "scenes"
    await edit(api, "m1", content="user says a sentence about lamp number 100.", hidden=False)
    for _ in range(4):
        await settle(dispatcher, clock, 40)
    assert numbers_in((await get(api, "/summary"))["text"])[0] == 100


async def hide_the_first_scene(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """The summary covers the messages 1 to 6, which auto-hide hides."""
    scenes = {"enabled": True, "detect": False, "auto_hide": 1}
    await put(api, settings={**OWN_FOLDS, "scenes": scenes})
    await append(api, talk(1, 21))
    ok(await api.put("/v1/chats/c/scenes/breaks/6"), 201)
    for _ in range(4):
        await settle(dispatcher, clock, 40)
    hidden_by = [one["hidden_by"] for one in (await get(api, "/messages"))["items"]]
    assert hidden_by == ["scenes"] * 6 + [None] * 15
    assert await shown(api) == numbers(1, 6)


async def test_an_edit_of_a_hidden_message_is_in_the_next_fold(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await hide_the_first_scene(api, dispatcher, clock)
    await edit(api, "m1", content="user says a sentence about lamp number 100.")
    assert await shown(api) == []
    await settle(dispatcher, clock, 40)
    assert await shown(api) == [100, *numbers(2, 6)]


async def test_a_deleted_hidden_message_leaves_the_summary(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await hide_the_first_scene(api, dispatcher, clock)
    await soft_delete(api, "m2")
    await settle(dispatcher, clock, 40)
    assert await shown(api) == [1, *numbers(3, 6)]


async def test_regenerate_does_not_restore_a_text_a_person_replaced(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api)
    for n in range(1, 40):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    for text in ("They met in Paris #777.", "They met in Rome #888."):
        ok(await api.put("/v1/chats/c/summary", json={"text": text}), 200)
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    assert (await get(api, "/summary"))["text"] == ""
    await settle(dispatcher, clock)
    assert numbers_in((await get(api, "/summary"))["text"]) == numbers(1, await anchor(api) - 1)


async def test_a_rewritten_text_is_stale_after_another_truncation(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=OWN_FOLDS)
    for n in range(1, 28):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    for from_seq in (11, 9):
        ok(await api.put("/v1/chats/c/summary", json={"text": f"It went on up to #{from_seq}."}), 200)
        assert not (await get(api, "/summary"))["stale"]
        await cut_off(api, from_seq)
        assert (await get(api, "/summary"))["stale"]


async def replace_what_a_person_wrote(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A person's text replaced the second fold for a while; then the model made that fold again, and the next."""
    await put(api, settings=OWN_FOLDS)
    for n in range(1, 28):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    ok(await api.put("/v1/chats/c/summary", json={"text": "They met in Paris #777."}), 200)
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    await settle(dispatcher, clock)
    for n in range(28, 50):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    assert await shown(api) == numbers(1, 30)


async def test_a_replaced_text_does_not_return_after_a_truncation(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await replace_what_a_person_wrote(api, dispatcher, clock)
    for from_seq in (10, 5):
        await cut_off(api, from_seq)
        assert numbers_in((await get(api, "/summary"))["text"]) in (numbers(1, 6), [])


async def test_a_replaced_personal_text_stays_away_in_a_fork(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await replace_what_a_person_wrote(api, dispatcher, clock)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f", "at_seq": 9}), 201)
    assert numbers_in(ok(await api.get("/v1/chats/f/summary"), 200)["text"]) == numbers(1, 6)


async def test_a_replaced_personal_text_stays_away_in_a_reimport(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await replace_what_a_person_wrote(api, dispatcher, clock)
    inserted = [*talk(1, 9), {**talk(90, 90)[0], "id": "between"}, *talk(10, 49)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": inserted}), 200)
    await settle(dispatcher, clock)
    assert 777 not in numbers_in((await get(api, "/summary"))["text"])


@pytest.mark.parametrize("rewritten", [False, True])
async def test_folds_onto_a_replaced_text_do_not_return(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, rewritten: bool
) -> None:
    """A person chose the text that they had begun with, maybe instead of a second one, and had it replaced."""
    await put(api, settings=OWN_FOLDS)
    for text in ("They met in Paris #777.", "They met in Rome #888.")[: 1 + rewritten]:
        ok(await api.put("/v1/chats/c/summary", json={"text": text}), 200)
    for n in range(1, 34):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    ok(await api.put("/v1/chats/c/summary/current", json={"version": 1}), 200)
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    async with while_the_model_is_asked(dispatcher, model):
        ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f", "at_seq": 30}), 201)
        await cut_off(api, 31)
        for chat_id in "cf":
            found = ok(await api.get(f"/v1/chats/{chat_id}/summary"), 200)
            assert (found["version"], found["kept_text"], found["text"]) == (None, "", "")
    await settle(dispatcher, clock, RETRY_DELAYS_S[0] + 2)
    for chat_id in "cf":
        found = ok(await api.get(f"/v1/chats/{chat_id}/summary"), 200)
        assert (found["kept_text"], numbers_in(found["text"])) == ("", numbers(1, found["last_seq"]))


async def test_a_wish_to_replace_a_text_outlives_a_cut_off(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    """The newest of the folds that keep the text is cut off before the model is asked, here and in a fork."""
    await put(api, settings=OWN_FOLDS)
    ok(await api.put("/v1/chats/c/summary", json={"text": "They met in Paris #777."}), 200)
    for n in range(1, 34):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    newest = await get(api, "/summary")
    assert (newest["kept_text"], newest["version"]) == ("They met in Paris #777.", 4)
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    async with while_the_model_is_asked(dispatcher, model):
        ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f", "at_seq": newest["last_seq"] - 2}), 201)
        await cut_off(api, newest["last_seq"] - 1)
    await settle(dispatcher, clock, RETRY_DELAYS_S[0] + 2)
    for chat_id in "cf":
        found = ok(await api.get(f"/v1/chats/{chat_id}/summary"), 200)
        assert (found["kept_text"], numbers_in(found["text"])) == ("", numbers(1, found["last_seq"]))


async def test_a_text_written_after_a_wish_and_a_cut_off_stays(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    """It gets the number of the fold that was to be made again."""
    await put(api, settings=OWN_FOLDS)
    ok(await api.put("/v1/chats/c/summary", json={"text": "They met in Paris #777."}), 200)
    for n in range(1, 34):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    newest = await get(api, "/summary")
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    await cut_off(api, newest["last_seq"] - 1)
    ok(await api.put("/v1/chats/c/summary", json={"text": "They met in Rome #888."}), 200)
    assert (await get(api, "/summary"))["version"] == newest["version"]
    await settle(dispatcher, clock)
    assert (await get(api, "/summary"))["kept_text"] == "They met in Rome #888."


async def test_a_replaced_text_is_gone_once_all_folds_are_cut_off(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=OWN_FOLDS)
    ok(await api.put("/v1/chats/c/summary", json={"text": "They met in Paris #777."}), 200)
    for n in range(1, 22):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    assert (await get(api, "/summary"))["version"] == 2
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    ok(await api.post("/v1/chats/c/fork", json={"chat_id": "f", "at_seq": 3}), 201)
    await cut_off(api, 4)
    await settle(dispatcher, clock)
    for chat_id in "cf":
        assert ok(await api.get(f"/v1/chats/{chat_id}/summary"), 200)["kept_text"] == ""


async def test_a_truncation_after_a_replacement_restores_no_kept_text(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=OWN_FOLDS)
    ok(await api.put("/v1/chats/c/summary", json={"text": "They met in Paris #777."}), 200)
    for n in range(1, 34):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    ok(await api.put("/v1/chats/c/summary/current", json={"version": 1}), 200)
    ok(await api.post("/v1/chats/c/summary/regenerate", json={"replace_edited": True}), 202)
    await settle(dispatcher, clock)
    await cut_off(api, 8)
    assert (await get(api, "/summary"))["kept_text"] == ""


async def test_a_reimport_keeps_a_personal_text_below_later_folds(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=OWN_FOLDS)
    for n in range(1, 22):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
    for n in range(22, 34):
        await append(api, talk(n, n))
        await settle(dispatcher, clock)
        if n == 28:
            ok(await api.put("/v1/chats/c/summary", json={"text": "It began at #999."}), 200)
    assert (await shown(api))[0] == 999
    inserted = [*talk(1, 4), {**talk(40, 40)[0], "id": "between"}, *talk(5, 33)]
    ok(await api.put("/v1/chats/c/messages", json={"messages": inserted}), 200)
    await settle(dispatcher, clock)
    assert numbers_in((await get(api, "/summary"))["kept_text"]) == [999]


async def test_a_fold_that_no_part_can_hold_fails_and_ends(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await put(api, settings=OWN_FOLDS)
    await append(api, talk(1, 21))
    ok(await api.put("/v1/chats/c/summary", json={"text": "之" * 19_000, "keep": False}), 200)
    async with asyncio.timeout(20):
        await settle(dispatcher, clock)
    (work,) = ok(await api.get("/v1/work"), 200)["items"]
    assert "fit" in work["error"]
    assert model.calls == []


async def test_messages_hidden_by_scenes_are_folded_in_parts_too(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    """Hidden messages are summarised but not sent, so a range may have many more messages than are sent."""
    scenes = {"enabled": True, "detect": False, "auto_hide": 2}
    await put(api, settings={"memos": {"enabled": False}, "scenes": scenes, "history": OWN_FOLDS["history"]})
    await append(api, talk(1, 150))
    ok(await api.put("/v1/chats/c/scenes/breaks/130"), 201)
    for _ in range(4):
        await settle(dispatcher, clock, 40)
    await put(api, status=200, settings={"summary": {"enabled": True}})
    for _ in range(4):
        await settle(dispatcher, clock, 40)
    assert await anchor(api) == 129  # while the summary was off, the edges were every 8th message
    assert await shown(api) == numbers(1, 128)
    folds = [str(call.body["messages"]) for call in model.calls if "You keep the story" in str(call.body)]
    assert [text.count("lamp number") for text in folds] == [40, 40, 40, 8, 7]
