"""`POST …/memos/backfill`: memos of what was said while memos were off."""

from collections.abc import Sequence

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.eligibility import Filters
from app.chats.head import RangeMessage
from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.memos.backfill import fill_gap, list_full, list_uncovered, take_full
from app.memos.batches import OpenBatch
from tests.background import settle, settle_rounds
from tests.book import ask, book, statuses
from tests.scripted_model import ScriptedModel
from tests.talk import Json, append, context, cut_off, hide, ok, put, soft_delete, talk

OFF = {"memos": {"enabled": False}}
ON = {"memos": {"enabled": True}}


async def with_a_gap(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    """A chat of 300 messages with memos on for the first 20, off until 220, and on again, with a window of 3."""
    await put(api, settings={"memos": {"window": 3}})
    await append(api, talk(1, 20))
    await put(api, status=200, settings=OFF)
    await append(api, talk(21, 220))
    await put(api, status=200, settings=ON)
    await append(api, talk(221, 300))
    await settle_rounds(dispatcher, clock, rounds=3)


async def backfill(api: httpx.AsyncClient, status: int = 202, **wanted: int) -> Json:
    """Backfill, and return what was made; the work item of an answer with 202 exists."""
    answer = await ask(api, "POST", "/backfill", status, wanted)
    if status == 202:
        work_id = answer.pop("work_id")
        assert ok(await api.get(f"/v1/work/{work_id}"), 200)["layer"] == "memos"
    return answer


async def ranges(api: httpx.AsyncClient) -> list[tuple[int, int]]:
    return [(memo["first_seq"], memo["last_seq"]) for memo in await book(api)]


def covered_seqs(found: Sequence[tuple[int, int]]) -> list[int]:
    return [seq for first, last in found for seq in range(first, last + 1)]


async def test_every_message_has_one_memo_after_a_backfill(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await with_a_gap(api, dispatcher, clock)
    before = await ranges(api)
    gap_end = before[2][0] - 1
    assert before[:2] == [(1, 8), (9, 16)]
    assert gap_end > 150
    answer = await backfill(api)
    found = await ranges(api)
    assert answer == {"created": len(found) - len(before), "first_seq": 17, "last_seq": gap_end}
    assert covered_seqs(found) == list(range(1, before[-1][1] + 1))
    await settle_rounds(dispatcher, clock, rounds=3)
    assert set(await statuses(api)) == {"ready"}
    assert await backfill(api, 200) == {"created": 0, "first_seq": None, "last_seq": None}


@pytest.mark.parametrize("said", [40, 44, 300])
async def test_a_backfill_needs_no_append_after_memos_are_on(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, said: int
) -> None:
    await put(api, settings=OFF)
    await append(api, talk(1, said))
    await put(api, status=200, settings=ON)
    if said < 100:
        await backfill(api, first_seq=1, last_seq=10)
        assert await ranges(api) == [(1, 8), (9, 16)]
    await backfill(api)
    whole = said // 8 * 8
    assert covered_seqs(await ranges(api)) == list(range(1, whole + 1))
    assert await backfill(api, 200) == {"created": 0, "first_seq": None, "last_seq": None}
    await append(api, talk(said + 1, whole + 8))
    assert (await ranges(api))[-1] == (whole + 1, whole + 8)
    await settle_rounds(dispatcher, clock, rounds=3)
    assert set(await statuses(api)) == {"ready"}


@pytest.mark.parametrize(
    ("wanted", "last_seq"),
    [
        ({"first_seq": 45}, None),
        ({"first_seq": 41, "last_seq": 44}, None),
        ({"first_seq": 40}, 40),
        ({"first_seq": 20, "last_seq": 24}, 24),
        ({"first_seq": 20, "last_seq": 25}, 32),
        ({"first_seq": 20_000}, None),
    ],
)
async def test_full_batches_are_formed_through_the_range(
    api: httpx.AsyncClient, wanted: Json, last_seq: int | None
) -> None:
    """The open batch holds five full batches, 1 to 40, and four messages more."""
    await put(api, settings=OFF)
    await append(api, talk(1, 44))
    await put(api, status=200, settings=ON)
    made = await backfill(api, 202 if last_seq else 200, **wanted)
    assert made["last_seq"] == last_seq
    assert covered_seqs(await ranges(api)) == list(range(1, (last_seq or 0) + 1))


async def test_full_batches_are_formed_by_their_own_settings(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    """Later settings apply to the batch that opens after them; deleted messages do not count."""
    await put(api, settings=OFF)
    await append(api, talk(1, 40))
    await put(api, status=200, settings=ON)
    await soft_delete(api, "m3", "m4")
    await put(api, status=200, settings={"memos": {"every_messages": 4}})
    await backfill(api, last_seq=10)
    assert await ranges(api) == [(1, 10)]
    await append(api, talk(41, 45))
    assert (await ranges(api))[:5] == [(1, 10), (11, 18), (19, 26), (27, 34), (35, 42)]
    await append(api, talk(46, 46))
    assert (await ranges(api))[-1] == (43, 46)


async def test_a_backfill_calls_the_model_once_per_batch(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await with_a_gap(api, dispatcher, clock)
    calls = len(model.calls)
    created = (await backfill(api, first_seq=50, last_seq=81))["created"]
    await backfill(api, 200, first_seq=50, last_seq=81)
    await settle(dispatcher, clock)
    assert (created, len(model.calls) - calls) == (4, 4)
    assert (50, 57) in await ranges(api)


async def test_a_backfill_changes_no_memo_and_no_window(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await with_a_gap(api, dispatcher, clock)
    before, shown = await book(api), await context(api)
    await backfill(api, last_seq=100)
    await settle_rounds(dispatcher, clock, rounds=3)
    after = {memo["id"]: memo for memo in await book(api)}
    assert [after[memo["id"]] for memo in before] == before
    assert (await context(api))["prefix_hash"] == shown["prefix_hash"]


async def test_the_end_of_a_range_gets_a_shorter_batch(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await with_a_gap(api, dispatcher, clock)
    assert await backfill(api, first_seq=20, last_seq=30) == {"created": 2, "first_seq": 20, "last_seq": 30}
    assert (await ranges(api))[2:4] == [(20, 27), (28, 30)]


async def test_deleted_memos_stay_deleted(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    await with_a_gap(api, dispatcher, clock)
    first = (await book(api))[0]
    await ask(api, "DELETE", f"/{first['id']}", 204)
    await backfill(api, last_seq=40)
    assert await ranges(api)
    assert (await ranges(api))[0] == (9, 16)


async def test_hidden_and_deleted_messages_fill_no_batch(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await with_a_gap(api, dispatcher, clock)
    await hide(api, (17, 60))
    await soft_delete(api, "m61", "m62")
    assert await backfill(api, 200, last_seq=62) == {"created": 0, "first_seq": None, "last_seq": None}
    assert await backfill(api, last_seq=70) == {"created": 1, "first_seq": 17, "last_seq": 70}


async def test_a_cut_off_through_a_short_batch_reopens_it(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await with_a_gap(api, dispatcher, clock)
    await backfill(api, last_seq=36)
    assert (33, 36) in await ranges(api)
    await cut_off(api, 35)
    assert (await ranges(api))[-1] == (25, 32)
    await append(api, [message | {"id": f"again-{message['id']}"} for message in talk(35, 39)])
    assert (await ranges(api))[-1] == (25, 32)
    await append(api, [message | {"id": f"again-{message['id']}"} for message in talk(40, 40)])
    assert (await ranges(api))[-1][0] == 33


async def test_a_tight_budget_leaves_out_the_oldest_memos_first(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings=OFF | {"history": {"keep_messages": 8, "grow_messages": 8}})
    await append(api, talk(1, 80))
    await put(api, status=200, settings={"memos": {"enabled": True, "window": 1}})
    await append(api, talk(81, 240))
    await put(api, status=200, settings={"memos": {"window": 60}})
    await settle_rounds(dispatcher, clock, rounds=3)
    await backfill(api)
    await settle_rounds(dispatcher, clock, rounds=3)
    memos = {f"memo:{memo['id']}": memo for memo in await book(api)}
    whole = await context(api)
    numbers = [memos[source]["number"] for source in _memo_sources(whole)]
    assert numbers != sorted(numbers)
    for fewer in (100, 300, 600):
        shown = _memo_sources(await context(api, max_tokens=whole["tokens"] - fewer))
        assert 0 < len(shown) < len(numbers)
        assert shown == _memo_sources(whole)[-len(shown) :]


def _memo_sources(shown: Json) -> list[str]:
    return [source for one in shown["segments"] if one["name"] == "memos" for source in one["sources"]]


async def test_a_backfill_needs_memos_to_be_on(api: httpx.AsyncClient) -> None:
    await put(api, settings=OFF)
    await append(api, talk(1, 20))
    assert (await backfill(api, 409))["code"] == "memos_off"


async def test_a_backfill_refuses_an_empty_range(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 1))
    refused = await backfill(api, 422, first_seq=9, last_seq=8)
    assert refused["errors"] == [{"loc": ["body", "last_seq"], "msg": "must be at least first_seq"}]


async def test_a_backfill_of_an_empty_chat_makes_nothing(api: httpx.AsyncClient) -> None:
    await put(api)
    before = await context(api)
    assert (await backfill(api, 200))["created"] == 0
    assert await context(api) == before


spans = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), max_size=6)


@given(spans, st.integers(1, 30), st.integers(0, 30))
def test_uncovered_parts_are_the_other_seqs(steps: list[tuple[int, int]], first: int, length: int) -> None:
    covered, seq = [], 0
    for step, more in steps:
        covered.append((seq + step, seq + step + more))
        seq += step + more
    wanted = set(range(first, first + length))
    found = list_uncovered(covered, (first, first + length - 1))
    assert covered_seqs(found) == sorted(wanted - set(covered_seqs(covered)))


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 5), st.data())
def test_what_stays_open_has_the_other_messages(eligible: list[bool], size: int, data: st.DataObject) -> None:
    messages = _messages(eligible)
    open_batch = OpenBatch(1, size, Filters(), sum(eligible))
    full = list_full(open_batch, messages)
    assert [sum(eligible[one.first_seq - 1 : one.last_seq]) for one in full] == [size] * (sum(eligible) // size)
    if full:
        taken = full[: data.draw(st.integers(1, len(full)))]
        left = take_full(open_batch, taken)
        assert left == OpenBatch(taken[-1].last_seq + 1, size, Filters(), sum(eligible[taken[-1].last_seq :]))
        assert list_full(left, messages[left.first_seq - 1 :]) == full[len(taken) :]


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 5))
def test_a_gap_is_filled_without_a_hole(eligible: list[bool], size: int) -> None:
    batches = fill_gap((1, len(eligible)), _messages(eligible), size=size, filters=Filters())
    counts = [sum(eligible[batch.first_seq - 1 : batch.last_seq]) for batch in batches]
    assert sum(counts) == sum(eligible)
    assert all(count == size for count in counts[:-1])
    assert all(1 <= count <= size for count in counts)
    assert covered_seqs([(one.first_seq, one.last_seq) for one in batches]) == list(
        range(1, batches[-1].last_seq + 1 if batches else 1)
    )


def _messages(eligible: Sequence[bool]) -> list[RangeMessage]:
    """Messages with the seqs 1, 2, …; those that are not eligible were hidden by a person."""
    return [
        RangeMessage(seq, f"m{seq}", "user", None, None, 5, not is_eligible, False, None, False, b"")
        for seq, is_eligible in enumerate(eligible, start=1)
    ]
