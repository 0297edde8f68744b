"""`cache` decides where the breakpoints are and how long they last, and nothing else in a context."""

from typing import Any, get_args

import httpx
import pytest

from app.chats.settings import PresetName
from app.kit.clock import SteppedClock
from tests.talk import FORMATS, Json, append, context, get, put, said, talk

MARKED = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}


def marks_of(answer: Json) -> list[Json]:
    """Every `cache_control` of a context in the format `anthropic`."""
    blocks = [*answer["system"], *(block for message in answer["messages"] for block in message["content"])]
    return [block["cache_control"] for block in blocks if "cache_control" in block]


def without_marks(answer: Any) -> Any:
    """The context without its breakpoints."""
    if isinstance(answer, dict):
        left_out = ("cache_control", "breakpoints")
        return {key: without_marks(value) for key, value in answer.items() if key not in left_out}
    return [without_marks(one) for one in answer] if isinstance(answer, list) else answer


async def pause(api: httpx.AsyncClient, clock: SteppedClock, n: int, silence_s: float) -> None:
    """Let the user say the nth message after a silence, and the character answer at once."""
    clock.step(silence_s)
    await append(api, [said(n)])
    await append(api, [said(n + 1)])


@pytest.mark.parametrize("preset", get_args(PresetName))
async def test_the_setting_cache_changes_no_text(api: httpx.AsyncClient, preset: str) -> None:
    await put(api, settings={"preset": preset}, system_prompt="You are Kai.", user_persona="Mira, 30.")
    await append(api, talk(1, 41))
    for fmt in FORMATS:
        answers = []
        for choice in ("auto", "off", "5m", "1h"):
            await put(api, settings={"cache": choice}, status=200)
            answers.append(await context(api, format=fmt))
        assert [without_marks(one) for one in answers] == [without_marks(answers[0])] * 4
        auto, off, five, hour = (one["breakpoints"] for one in answers)
        assert off == []
        assert auto == five == hour
        assert five != []


async def test_a_chat_shows_the_time_to_live_that_takes_effect(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    async def shown() -> int:
        ttl_s: int = (await get(api, ""))["settings"]["cache_ttl_s"]
        return ttl_s

    await put(api)
    assert await shown() == 300
    for n in range(1, 9, 2):
        await pause(api, clock, n, 1_200)
    assert await shown() == 3_600
    await put(api, settings={"cache": "off"}, status=200)
    assert await shown() == 300
    await put(api, settings={"cache": "1h"}, status=200)
    assert await shown() == 3_600
    await put(api, settings={"cache_ttl_s": 60}, status=200)
    assert await shown() == 60


async def test_the_marks_have_the_time_of_the_choice(api: httpx.AsyncClient) -> None:
    await put(api)
    await append(api, talk(1, 3))
    for choice, marked in MARKED.items():
        await put(api, settings={"cache": choice}, status=200)
        answer = await context(api, format="anthropic")
        assert marks_of(answer) == [marked] * len(answer["breakpoints"])
    await put(api, settings={"cache": "off"}, status=200)
    assert marks_of(await context(api, format="anthropic")) == []


async def test_auto_follows_the_pauses_of_the_user(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api)
    await pause(api, clock, 1, 1_200)
    assert marks_of(await context(api, format="anthropic")) == [MARKED["5m"]], "the first message ends no pause"
    await pause(api, clock, 3, 1_200)
    await pause(api, clock, 5, 1_200)
    assert marks_of(await context(api, format="anthropic")) == [MARKED["1h"]]
    for n in range(7, 39, 2):
        await pause(api, clock, n, 40_000)
    assert marks_of(await context(api, format="anthropic")) == []
    for n in range(39, 71, 2):
        await pause(api, clock, n, 60)
    assert set(map(str, marks_of(await context(api, format="anthropic")))) == {str(MARKED["5m"])}


async def test_the_time_of_a_reply_belongs_to_the_pause(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api)
    await append(api, [said(1)])
    clock.step(200)
    await append(api, [said(2)])
    assert marks_of(await context(api, format="anthropic")) == [MARKED["5m"]]
    for n in range(3, 7):
        clock.step(200)
        await append(api, [said(n)])
    assert marks_of(await context(api, format="anthropic")) == [MARKED["1h"]], "400 seconds between two calls"


async def test_a_draft_and_another_line_have_the_chats_choice(api: httpx.AsyncClient, clock: SteppedClock) -> None:
    await put(api)
    await append(api, talk(1, 2))
    await pause(api, clock, 3, 1_200)
    await pause(api, clock, 5, 1_200)
    saved = await api.post("/v1/chats/c/checkpoints", json={"name": "then"})
    for n in (7, 9, 11):
        await pause(api, clock, n, 60_000)
    assert marks_of(await context(api, format="anthropic", draft="Hello?")) == []
    then = await context(api, format="anthropic", line=saved.json()["line"])
    assert set(map(str, marks_of(then))) == {str(MARKED["1h"])}
