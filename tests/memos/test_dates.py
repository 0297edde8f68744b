"""Each memo in the prompt carries the date of its messages."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.tokens import count_tokens
from app.memos.window import word_dates
from tests.background import settle
from tests.book import book
from tests.memos.texts import MEMO
from tests.scripted_model import ScriptedModel
from tests.talk import Json, append, context, cut_off, edit, hide, ok, put, said, soft_delete, talk

SMALL: Json = {"memos": {"every_messages": 4}, "history": {"keep_messages": 4, "grow_messages": 0}}
"""Settings under which a memo enters the prompt with the eighth message."""


def on(day: str, first: int, last: int, **more: Any) -> list[Json]:
    """The messages `first…last` of the conversation, sent at noon of a day."""
    return [said(n, sent_at=f"{day}T12:00:00Z", **more) for n in range(first, last + 1)]


@pytest.fixture(autouse=True)
def _make_one_memo(model: ScriptedModel) -> None:
    model.otherwise = MEMO


async def shown(api: httpx.AsyncClient) -> list[str]:
    """The first line of each memo in the prompt."""
    segments = (await context(api))["segments"]
    text = next((segment["text"] for segment in segments if segment["name"] == "memos"), "")
    return [memo.split("\n")[0] for memo in text.split("\n\n")[1:]]


async def begin(api: httpx.AsyncClient, *days: list[Json], **chat: Any) -> None:
    await put(api, **({"settings": SMALL} | chat))
    await append(api, [message for day in days for message in day])


# --- the words ---


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2026-05-28T10:00", "2026-05-28T21:00", "[05/28]"),
        ("2026-05-28T10:00", "2026-05-29T09:00", "[05/28–05/29]"),
        ("2026-05-28T10:00", "2026-05-28T22:30", "[05/28–05/29]"),
        ("2025-12-30T10:00", "2025-12-30T11:00", "[2025/12/30]"),
        ("2025-12-30T10:00", "2026-01-02T11:00", "[2025/12/30–01/02]"),
        ("2025-12-31T22:30", "2025-12-31T23:30", "[2025/12/31–01/01]"),
        ("0033-04-03T10:00", "0033-04-03T11:00", "[0033/04/03]"),
    ],
)
def test_dates_are_local_days_with_the_year_if_another(first: str, last: str, words: str) -> None:
    zone, anchor = "Europe/Berlin", datetime(2026, 6, 1, tzinfo=UTC)
    at = [datetime.fromisoformat(f"{text}+00:00") for text in (first, last)]
    assert word_dates(at[0], at[1], anchor, zone) == words


def test_the_anchors_year_is_that_of_the_zone_too() -> None:
    new_year = datetime(2025, 12, 31, 23, 30, tzinfo=UTC)
    assert word_dates(new_year, new_year, new_year, "Europe/Berlin") == "[01/01]"
    assert word_dates(new_year, new_year, new_year, "UTC") == "[12/31]"


# --- the window ---


async def test_a_memo_begins_with_the_date_of_its_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, on("2025-12-30", 1, 4), on("2025-12-31", 5, 6), on("2026-01-01", 7, 8), on("2026-01-02", 9, 20))
    await settle(dispatcher, clock)
    assert await shown(api) == ["[2025/12/30]", "[2025/12/31–01/01]", "[01/02]", "[01/02]"]
    (memo, *_) = await book(api)
    assert memo["text"].startswith("【Highlight 1】"), "the book has the text without the date"
    segment = next(one for one in (await context(api))["segments"] if one["name"] == "memos")
    assert segment["tokens"] >= count_tokens(segment["text"])


async def test_the_date_counts_in_the_budget_of_memos(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, on("2026-01-02", 1, 8))
    await settle(dispatcher, clock)
    (memo, _) = await book(api)
    undated = count_tokens(memo["text"])
    for value, lines in ((undated, []), (count_tokens(f"[01/02]\n{memo['text']}"), ["[01/02]"])):
        budget = {"type": "absolute", "value": value}
        await put(api, status=200, settings={"memos": {"budget": budget}})
        assert await shown(api) == lines


async def test_the_day_is_that_of_the_chats_time_zone(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    late = [message | {"sent_at": "2026-01-02T22:00:00Z"} for message in talk(1, 8)]
    await begin(api, late)
    await settle(dispatcher, clock)
    assert await shown(api) == ["[01/02]"]
    await put(api, status=200, time_zone="Asia/Tokyo")
    assert await shown(api) == ["[01/03]"]


async def test_a_memory_that_a_person_wrote_has_no_date(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await begin(api, on("2026-01-02", 1, 8))
    await settle(dispatcher, clock)
    ok(await api.post("/v1/chats/c/memos", json={"text": "They met in 2019.", "after_seq": 2}), 201)
    (memo, *_) = await book(api)
    ok(await api.patch(f"/v1/chats/c/memos/{memo['id']}", json={"text": "It rained.", "pinned": True}), 200)
    assert await shown(api) == ["[01/02]", "They met in 2019."]
    await cut_off(api, 3)
    assert await shown(api) == ["It rained.", "They met in 2019."]


async def test_only_summarised_messages_date_a_memo(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    other = on("2026-03-01", 1, 1, role="system") + on("2026-03-02", 2, 2, role="assistant", kind="thought")
    disabled = on("2026-03-03", 3, 3, role="assistant", name="Tess")
    begun = on("2026-03-04", 4, 9)
    await begin(
        api,
        [*other, *disabled, *begun],
        settings=SMALL | {"memos": {"every_messages": 4, "min_tokens": 2}},
        characters=[{"name": "Kai"}, {"name": "Tess", "disabled": True}],
    )
    await append(api, [said(10, content="Hm", sent_at="2026-03-09T12:00:00Z"), *on("2026-03-10", 11, 20)])
    await settle(dispatcher, clock)
    assert (await shown(api))[:2] == ["[03/04]", "[03/04–03/10]"]
    await soft_delete(api, "m8", "m9")
    await settle(dispatcher, clock)
    assert (await shown(api))[1] == "[03/10]"
    await hide(api, (4, 6))
    await edit(api, "m7", excluded=True)
    await settle(dispatcher, clock)
    assert (await shown(api))[0] == "[03/10]", "a memo without messages is empty"


async def test_a_reimport_that_changes_only_times_changes_dates(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await begin(api, on("2026-01-02", 1, 8))
    await settle(dispatcher, clock)
    asked = len(model.calls)
    ok(await api.put("/v1/chats/c/messages", json={"messages": on("2026-02-03", 1, 8)}), 200)
    assert await shown(api) == ["[02/03]"]
    await settle(dispatcher, clock)
    assert len(model.calls) == asked


async def test_dates_stay_as_they_are_between_two_cuts(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    history = {"keep_messages": 4, "grow_messages": 4}
    await begin(api, on("2025-12-30", 1, 9), settings=SMALL | {"history": history})
    await settle(dispatcher, clock)
    assert await shown(api) == ["[12/30]"]
    before = await context(api)
    await append(api, on("2026-01-02", 10, 12))
    await settle(dispatcher, clock)
    after = await context(api)
    assert after["prefix_hash"] == before["prefix_hash"]
    await append(api, on("2026-01-02", 13, 20))
    await settle(dispatcher, clock)
    assert (await shown(api))[0] == "[2025/12/30]", "the history begins in another year now"
