"""A long import in the preset `scenes`: its breaks are found from the oldest on, and the forced cut waits for them."""

import json
import re
from collections.abc import Sequence
from datetime import timedelta

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.tokens import count_tokens
from app.kit.work_queue import MAX_ATTEMPTS, RETRY_DELAYS_S
from tests.background import settle, settle_rounds
from tests.scenes.story import BY_HAND, NO_BREAK, anchor, asked_for, hidden, ranges, scenes, story_model
from tests.scripted_model import Reply, Request, ScriptedModel, refuses
from tests.summarising.quoted import messages_in
from tests.talk import Json, append, context, edit, get, put, said, soft_delete, talk

MESSAGES = 899
SCENE = 20
"""The story moves on after every 20 messages, which is 44 times."""

_tell = story_model()


def moving(first: int, last: int) -> list[Json]:
    """The messages `first…last` of a story that is somewhere else after every 20 of them."""
    return [
        said(n, content=f"At place {(n - 1) // SCENE}, they talk about lamp number {n} and what it may cost to mend.")
        for n in range(first, last + 1)
    ]


def finding(request: Request) -> str | Reply:
    """A model that finds the first message that is followed by another place."""
    if asked_for(request) != "break":
        return _tell(request)
    content = str(request["messages"][-1]["content"])
    possible = re.search(r"Possible answers: (.*) or null", content)
    assert possible
    ends = [int(n) for n in possible[1].split(", ") if int(n) % SCENE == 0]
    return json.dumps({"break_at": ends[0] if ends else None, "reason": "Another place."})


def reading(request: Request) -> str | Reply:
    """A model that finds the first possible message whose text names another place than the next one's."""
    if asked_for(request) != "break":
        return _tell(request)
    content = str(request["messages"][-1]["content"])
    possible = re.search(r"Possible answers: (.*) or null", content)
    assert possible
    places = {line["seq"]: re.findall(r"At place (\d+)", line["message"]) for line in messages_in(content)}
    ends = [n for n in map(int, possible[1].split(", ")) if n + 1 in places and places[n] != places[n + 1]]
    return json.dumps({"break_at": ends[0] if ends else None, "reason": "Another place."})


def looks(model: ScriptedModel) -> list[list[int]]:
    """The possible answers of each look so far."""
    contents = [str(call.body["messages"][-1]["content"]) for call in model.calls if asked_for(call.body) == "break"]
    found = [re.search(r"Possible answers: (.*) or null", content) for content in contents]
    return [[int(n) for n in possible[1].split(", ")] for possible in found if possible]


async def test_the_breaks_of_an_import_are_found(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = finding
    await put(api, settings={"preset": "scenes"})
    await append(api, moving(1, MESSAGES))
    assert await anchor(api) == 1  # the forced cut waits
    await settle_rounds(dispatcher, clock)
    found = await scenes(api)
    assert [scene["last_seq"] for scene in found[:-1]] == list(range(SCENE, MESSAGES, SCENE))
    assert {scene["closed_by"] for scene in found[:-1]} == {"model"}
    assert {scene["status"] for scene in found[:-1]} == {"ready"}
    shown = await context(api)
    assert shown["history"]["messages"] >= 16
    assert shown["memo_window"]["gaps"] == []
    assert await anchor(api) > MESSAGES - 3 * SCENE


def long_message(n: int, tokens: int) -> Json:
    """The nth message of a conversation, with `tokens` tokens of text or one more."""
    content = f"They talk about lamp number {n}"
    while count_tokens(content) < tokens:
        content += " and mend" if count_tokens(content) % 7 else ", the sea"
    return said(n, content=content)


async def test_breaks_between_long_messages_are_found(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = reading
    await put(api, settings={"preset": "scenes"})
    talks = [f"they talk about lamp number {n}{' and what it may cost to mend' * 40}" for n in range(1, 201)]
    places = [f"At place {n // SCENE}" for n in range(200)]
    contents = [
        f"{place}, {words}." if n % 2 else f"{words}. {place}."
        for n, (place, words) in enumerate(zip(places, talks, strict=True))
    ]
    await append(api, [said(n, content=content) for n, content in enumerate(contents, start=1)])
    await settle_rounds(dispatcher, clock)
    assert [scene["last_seq"] for scene in await scenes(api)] == [*range(SCENE, 200, SCENE), None]


@pytest.mark.parametrize(
    ("of_user", "of_character"), [(10, 10), (75, 75), (100, 100), (200, 200), (300, 300), (30, 150)]
)
async def test_a_long_scene_costs_few_tokens_of_looks(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    of_user: int,
    of_character: int,
) -> None:
    model.otherwise = lambda request: NO_BREAK if asked_for(request) == "break" else _tell(request)
    await put(api, settings={"preset": "scenes"})
    for n in range(1, 110, 2):
        await append(api, [long_message(n, of_user), long_message(n + 1, of_character)])
        await settle(dispatcher, clock)
    offered = [seq for look in looks(model) for seq in look]
    assert offered == list(range(10, 101))  # each once
    requests = [call.body for call in model.calls if asked_for(call.body) == "break"]
    assert sum(count_tokens(str(one["content"])) for body in requests for one in body["messages"]) <= 25_000


@pytest.mark.parametrize(("tokens", "context"), [(10, 10), (75, 3), (200, 2)])
async def test_a_look_reads_fewer_long_messages_as_context(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    tokens: int,
    context: int,
) -> None:
    model.otherwise = NO_BREAK
    await put(api, settings={"preset": "scenes"})
    await append(api, [long_message(n, tokens) for n in range(1, 15)])
    await settle(dispatcher, clock)
    await append(api, [long_message(n, tokens) for n in range(15, 25)])
    await settle(dispatcher, clock)
    read = messages_in(str(model.calls[-1].body["messages"][-1]["content"]))
    assert [line["seq"] for line in read] == list(range(13 - context, 25))


async def test_after_a_pause_four_messages_start_a_look(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = NO_BREAK
    await put(api, settings={"preset": "scenes"})
    await append(api, talk(1, 14))
    await settle(dispatcher, clock)
    assert looks(model) == [[10, 11, 12]]
    await append(api, [said(15)])
    clock.step(301)
    await append(api, [said(16, role="user")])
    await settle(dispatcher, clock)
    assert len(looks(model)) == 1
    await append(api, [said(17, role="assistant")])
    await settle(dispatcher, clock)
    assert looks(model)[1:] == [[13, 14, 15]]
    await append(api, talk(18, 20))
    await settle(dispatcher, clock)
    assert len(looks(model)) == 2


@pytest.mark.parametrize(("message", "again"), [("m11", 10), ("m13", 12), ("m14", 13)])
async def test_a_changed_message_is_judged_again(
    api: httpx.AsyncClient,
    dispatcher: Dispatcher,
    clock: SteppedClock,
    model: ScriptedModel,
    message: str,
    again: int,
) -> None:
    model.otherwise = NO_BREAK
    await put(api, settings={"preset": "scenes"})
    await append(api, talk(1, 14))
    await settle(dispatcher, clock)
    await edit(api, message, content="The next morning, at the pier.")
    await append(api, talk(15, 24))
    await settle(dispatcher, clock)
    assert looks(model) == [[10, 11, 12], list(range(again, 23))]


async def test_an_old_changed_message_stays_judged(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = NO_BREAK
    await put(api, settings={"preset": "scenes"})
    await append(api, talk(1, 30))
    await settle(dispatcher, clock)
    await soft_delete(api, "m12")
    await append(api, talk(31, 40))
    await settle(dispatcher, clock)
    assert looks(model) == [list(range(10, 29)), list(range(29, 39))]


async def test_a_fork_looks_only_at_what_is_not_judged(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = NO_BREAK
    await put(api, settings={"preset": "scenes"})
    await append(api, talk(1, 40))
    await settle(dispatcher, clock)
    assert (await api.post("/v1/chats/c/fork", json={"chat_id": "d", "at_seq": 30})).status_code == 201
    await append(api, [said(n, id=f"d{n}") for n in range(31, 43)], "d")
    await settle(dispatcher, clock)
    assert looks(model) == [list(range(10, 39)), list(range(30, 41))]


async def test_a_forced_cut_waits_ten_minutes_at_most(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = refuses(500)
    await put(api, settings={"preset": "scenes", "context_tokens": 4_000})
    await append(api, moving(1, 250))
    await settle_rounds(dispatcher, clock)
    assert await anchor(api) == 1
    shown = await context(api)
    assert shown["tokens"] <= 4_000
    assert (shown["history"]["last_seq"], shown["history"]["anchor_seq"] > 100) == (250, True)
    clock.step(570)
    await dispatcher.drain()
    assert await anchor(api) == 1
    clock.step(30)
    await dispatcher.drain()
    assert await ranges(api) == [(1, 234), (235, None)]
    assert (await context(api))["history"]["last_cut"]["reason"] == "forced"
    assert (await scenes(api))[0]["closed_by"] == "cut"


async def test_a_forced_cut_does_not_wait_for_a_failed_look(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = lambda request: refuses(400) if asked_for(request) == "break" else _tell(request)
    await put(api, settings={"preset": "scenes"})
    await append(api, talk(1, 30))
    for _ in range(MAX_ATTEMPTS):
        clock.step(RETRY_DELAYS_S[-1])
        await dispatcher.drain()
    await append(api, [said(n, role="user") for n in range(31, 201)])
    assert (await context(api))["history"]["last_cut"]["reason"] == "forced"
    assert await anchor(api) == 185


async def test_a_forced_cut_stops_waiting_after_refused_answers(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = lambda request: "A lovely story!" if asked_for(request) == "break" else _tell(request)
    await put(api, settings={"preset": "scenes"})
    await append(api, moving(1, 250))
    assert await anchor(api) == 1
    await settle(dispatcher, clock)
    assert (await context(api))["history"]["last_cut"]["reason"] == "forced"
    assert await ranges(api) == [(1, 234), (235, None)]
    offered = looks(model)
    assert offered[::3] == offered[1::3] == offered[2::3]  # three answers to each look, and no other attempt
    assert [seq for look in offered[::3] for seq in look] == list(range(10, 249))  # the refused looks judge all


async def test_a_pause_ends_a_scene_while_a_forced_cut_waits(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = lambda request: "A lovely story!" if asked_for(request) == "break" else _tell(request)
    await put(api, settings={"preset": "scenes"})
    start = clock() - timedelta(days=2)
    hours = [9 * ((n - 1) // 60) for n in range(1, 251)]
    await append(
        api, [said(n, sent_at=(start + timedelta(hours=hour)).isoformat()) for n, hour in enumerate(hours, start=1)]
    )
    assert await anchor(api) == 1
    await settle_rounds(dispatcher, clock)
    found = await scenes(api)
    assert [scene["last_seq"] for scene in found] == [60, 120, 180, 240, None]
    assert {scene["reason"] for scene in found[:-1]} == {"no usable answer: 9 h passed here"}
    assert await anchor(api) == 181


async def test_an_overlong_history_is_trimmed_before_the_memories(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = refuses(500)
    own = [{"name": "lore", "text": "The sea is green here.", "after": "memos"}]
    await put(api, settings={"preset": "scenes"})
    await append(api, moving(1, 250))
    found = (await api.post("/v1/chats/c/context", json={"max_tokens": 3_000, "segments": own})).json()
    assert [one["name"] for one in found["omitted"]] == ["history"]
    assert found["history"]["messages"] >= 16
    assert "lore" in [segment["name"] for segment in found["segments"]]


def _sizes(found: Sequence[tuple[int, int | None]]) -> list[int]:
    return [last - first + 1 for first, last in found if last is not None]


async def test_auto_hide_leaves_as_many_messages_as_a_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    model.otherwise = _tell
    await put(api, settings=BY_HAND)
    await append(api, talk(1, 30))
    for seq in (20, 24, 27):
        assert (await api.put(f"/v1/chats/c/scenes/breaks/{seq}")).status_code == 201
    await settle_rounds(dispatcher, clock)
    assert _sizes(await ranges(api)) == [20, 4, 3]
    assert await hidden(api) == []  # without the first scene, 10 would be left
    for n in range(31, 36):
        await append(api, [said(n)])
        await settle_rounds(dispatcher, clock)
        assert await hidden(api) == []
    await append(api, [said(36)])
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == list(range(1, 21))
    await soft_delete(api, "m36")
    await settle_rounds(dispatcher, clock)
    assert await hidden(api) == []
    assert (await get(api, "/context"))["history"]["messages"] >= 16
