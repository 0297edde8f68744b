"""Which ranges of messages are read together."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.consolidation.ranges import (
    MOST_MESSAGES,
    MOST_SPANS,
    Due,
    close,
    date_items,
    date_ranges,
    join,
    leave_out,
    merge_spans,
)
from app.layers.turns import OpenPeriod, Period

NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)

lengths = st.lists(st.integers(1, MOST_MESSAGES), max_size=40)


def _ranges(lengths: list[int]) -> list[Period]:
    ends = [sum(lengths[: n + 1]) for n in range(len(lengths))]
    return [Period(end - length + 1, end) for end, length in zip(ends, lengths, strict=True)]


@given(lengths)
def test_joined_ranges_cover_the_same_messages(lengths: list[int]) -> None:
    joined = join(_ranges(lengths))
    assert [seq for one in joined for seq in range(one.first_seq, one.last_seq + 1)] == list(range(1, sum(lengths) + 1))
    assert all(one.last_seq - one.first_seq < MOST_MESSAGES for one in joined)
    assert all(second.last_seq - first.first_seq >= MOST_MESSAGES for first, second in pairwise(joined))


@given(lengths)
def test_a_later_range_is_newer(lengths: list[int]) -> None:
    dues: list[Due] = []
    for now in (NOW, NOW, NOW - DAY):
        dues += date_ranges(_ranges(lengths), now, after=dues[-1].learnt_at if dues else None)
    last = date_items(1, [MOST_MESSAGES] * 1_000)[-1]
    assert all(later.learnt_at > due.learnt_at + last for due, later in pairwise(dues))
    assert [Due.from_payload(due.to_payload()) for due in dues] == dues
    assert Due.from_payload({"instruction": "…"}) is None


@given(st.integers(1, 10_000))
def test_a_range_is_dated_when_it_is_due(seconds: int) -> None:
    later = NOW + timedelta(seconds=seconds)
    assert date_ranges([Period(1, 2)], later, after=NOW) == [Due(1, 2, later)]


@given(st.integers(1, 100), st.lists(st.integers(0, MOST_MESSAGES - 1), max_size=24), st.data())
def test_a_later_message_is_newer_in_any_answer(first_seq: int, offsets: list[int], data: st.DataObject) -> None:
    seqs = sorted(first_seq + offset for offset in offsets)
    after = date_items(first_seq, seqs)
    assert [*after, timedelta(milliseconds=1)] == sorted({*after, timedelta(milliseconds=1)})
    others = sorted(data.draw(st.lists(st.sampled_from(seqs), max_size=12))) if seqs else []
    for seq, other in zip(others, date_items(first_seq, others), strict=True):
        assert all((other > mine) == (seq > my_seq) for my_seq, mine in zip(seqs, after, strict=True) if seq != my_seq)


def test_the_open_range_ends_where_it_is_closed() -> None:
    filling = OpenPeriod(5, turns=1, awaits_reply=True)
    assert close(filling, 8) == ([Period(5, 8)], OpenPeriod(9, awaits_reply=True))
    assert close(filling, 4) == ([], filling)


spans = st.lists(st.tuples(st.integers(1, 900), st.integers(0, 9)).map(lambda one: (one[0], one[0] + one[1])))


def _seqs(spans: list[tuple[int, int]]) -> set[int]:
    return {seq for first, last in spans for seq in range(first, last + 1)}


@given(spans, spans.map(lambda found: (found or [(300, 600)])[0]))
def test_what_is_left_out_of_spans_is_not_in_them(found: list[tuple[int, int]], out: tuple[int, int]) -> None:
    kept = leave_out(found, *out)
    assert _seqs(kept) == _seqs(found) - _seqs([out])
    assert all(first <= last for first, last in kept)


@given(spans)
def test_merged_spans_have_the_same_seqs(found: list[tuple[int, int]]) -> None:
    merged = merge_spans(found)
    assert _seqs(merged) == _seqs(found)
    assert all(first[1] + 1 < second[0] for first, second in pairwise(merged))


def test_the_last_of_too_many_spans_has_the_gaps() -> None:
    merged = merge_spans([(seq, seq) for seq in range(1, 1_001, 3)])
    assert len(merged) == MOST_SPANS
    assert merged[-2:] == [(295, 295), (298, 1_000)]
