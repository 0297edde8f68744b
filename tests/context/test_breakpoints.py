from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given

from app.context.order import arrange
from app.context.parts import Parts
from app.context.segments import Arrangement, Rendered, RenderOptions, Segment
from tests.context.arrangements import all_segments, entry, manners, parts, render_options, rendered, segment, talk
from tests.talk import FORMATS

PREFIX = [segment("system"), segment("user"), segment("facts"), segment("memos")]


def marks(arrangement: Arrangement) -> list[str]:
    return [one.after for one in rendered(arrangement, render_options("anthropic")).breakpoints]


def test_breakpoints_follow_user_memos_16th_message_and_newest() -> None:
    arrangement = Arrangement(prefix=PREFIX, history=talk(40), newest=entry(41))
    assert marks(arrangement) == ["segment:user", "segment:memos", "message:m32", "message:m41"]


def test_the_16th_message_is_counted_from_the_anchor() -> None:
    arrangement = Arrangement(history=talk(40)[9:], newest=entry(41))
    assert marks(arrangement) == ["message:m25", "message:m41"]


def test_a_volatile_segment_moves_the_last_one_before_it() -> None:
    arrangement = Arrangement(prefix=PREFIX, history=talk(18), volatile=[segment("time")], newest=entry(19))
    assert marks(arrangement) == ["segment:user", "segment:memos", "message:m16", "message:m18"]
    short = Arrangement(prefix=PREFIX, volatile=[segment("time")], newest=entry(1))
    assert marks(short) == [
        "segment:user",
        "segment:memos",
    ]


def test_without_newest_the_last_one_is_at_the_history_end() -> None:
    assert marks(Arrangement(history=talk(4))) == ["message:m4"]


def test_a_missing_segments_breakpoint_is_at_the_one_before() -> None:
    assert marks(Arrangement(prefix=[segment("system"), segment("facts")])) == ["segment:system", "segment:facts"]
    assert marks(Arrangement(prefix=[segment("system")])) == ["segment:system"]
    assert marks(Arrangement(prefix=[segment("facts")])) == ["segment:facts"]
    assert marks(Arrangement(newest=entry(1))) == ["message:m1"]


def test_no_breakpoint_follows_a_callers_segment_that_moves() -> None:
    note = segment("note", after="in_chat", depth=4)
    arrangement = Arrangement(prefix=PREFIX, history=talk(20), in_chat=[note], newest=entry(21))
    assert marks(arrangement) == ["segment:user", "segment:memos", "message:m16", "message:m17"]


@pytest.mark.parametrize(("depth", "last"), [(3, "memos"), (4, "memos"), (5, None)])
def test_no_breakpoint_follows_a_segment_that_moves_next_turn(depth: int, last: str | None) -> None:
    note = segment("note", after="in_chat", depth=depth)
    answer = rendered(Arrangement(PREFIX, talk(2), [note], newest=entry(3)), render_options("anthropic"))
    assert answer.breakpoints[-1].after == (f"segment:{last}" if last else "message:m3")
    cacheable = {row["name"]: row["cacheable"] for row in answer.segments}
    assert cacheable["note"] is cacheable["history"] is (last is None)


def test_a_callers_segment_after_newest_moves_no_breakpoint() -> None:
    arrangement = Arrangement(history=talk(2), in_chat=[segment("note", after="in_chat")], newest=entry(3))
    assert marks(arrangement) == ["message:m3"]


def test_no_breakpoint_follows_an_uncacheable_segment() -> None:
    arrangement = Arrangement(prefix=[segment("user"), segment("facts", cacheable=False)], history=talk(2))
    assert marks(arrangement) == ["segment:user"]


def test_cache_control_is_on_the_blocks_of_the_breakpoints() -> None:
    answer = rendered(Arrangement(prefix=PREFIX, history=talk(2), newest=entry(3)), render_options("anthropic"))
    kept = [block["text"] for block in blocks_of(answer) if "cache_control" in block]
    assert kept == ["The user.", "The memos.", "Hello."]


def blocks_of(answer: Rendered) -> list[dict[str, Any]]:
    return [*(answer.system or []), *(block for message in answer.messages or [] for block in message["content"])]


def test_tokens_and_hash_of_a_breakpoint_are_of_all_up_to_there() -> None:
    arrangement = Arrangement(prefix=PREFIX, history=talk(4), newest=entry(5))
    answer = rendered(arrangement, render_options("openai", factor=2.0))
    assert answer.breakpoints[-1].tokens == answer.tokens
    assert answer.breakpoints[0].tokens == 2 * sum(one.tokens + 4 for one in PREFIX[:2])
    other = rendered(replace(arrangement, newest=entry(5, text="Hi.")), render_options("openai", factor=2.0))
    assert [one.hash for one in answer.breakpoints[:-1]] == [one.hash for one in other.breakpoints[:-1]]
    assert answer.breakpoints[-1].hash != other.breakpoints[-1].hash
    assert len(answer.breakpoints[0].hash) == sha256().digest_size * 2


def flat(answer: Rendered) -> list[tuple[str, str, bool]]:
    """Role, text and mark of every block, as the provider reads them one after the other."""
    system = [("system", block["text"], "cache_control" in block) for block in answer.system or []]
    said = [(m["role"], b["text"], "cache_control" in b) for m in answer.messages or [] for b in m["content"]]
    return [*system, *said]


def _changes(one: Segment) -> bool:
    """Whether a segment has another text in the next turn; one that first appears there is after the history."""
    return one.name in ("recalled", "time") and (one.after is None or not one.text.isspace())


@given(parts(), manners())
def test_a_prefix_up_to_a_breakpoint_is_reused_in_the_next_turn(drawn: Parts, how: RenderOptions) -> None:
    segments = all_segments(drawn)
    now = arrange(segments, drawn.history, drawn.newest, 1)
    seq = drawn.history[-1].seq + 1 if drawn.history else 1
    history = [*drawn.history, *([drawn.newest] if drawn.newest else []), entry(seq + 1, "assistant")]
    later = [one._replace(text="Changed.") if _changes(one) else one for one in segments]
    then = arrange(later, history, entry(seq + 2), 1)
    how = replace(how, format="anthropic", prefill=False)
    before, after = flat(rendered(now, how)), flat(rendered(then, how))
    last = max((at for at, block in enumerate(before) if block[2]), default=-1)
    assert [block[:2] for block in before[: last + 1]] == [block[:2] for block in after[: last + 1]]


@given(parts(), manners())
def test_there_are_at_most_four_ordered_distinct_breakpoints(drawn: Parts, how: RenderOptions) -> None:
    answer = rendered(arrange(drawn.segments, drawn.history, drawn.newest, 1), how)
    tokens = [one.tokens for one in answer.breakpoints]
    assert len(tokens) <= 4
    assert len({one.after for one in answer.breakpoints}) == len(tokens)
    assert tokens == sorted(tokens)
    assert all(count <= answer.tokens for count in tokens)
    stable = takewhile(lambda row: row["cacheable"], answer.segments)
    marked = {one.after for one in answer.breakpoints}
    assert marked <= {mark for row in stable for mark in (*row["sources"], f"segment:{row['name']}")}


def prefix_hash(arrangement: Arrangement, how: RenderOptions) -> str:
    return rendered(arrangement, how).prefix_hash


PLAN = Arrangement(prefix=PREFIX, history=talk(3), newest=entry(4))


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_prefix_hash_ignores_changes_after_its_prefix(fmt: Any) -> None:
    same = replace(PLAN, history=talk(5), newest=entry(6, text="Other."), volatile=[segment("time")])
    assert prefix_hash(PLAN, render_options(fmt)) == prefix_hash(same, render_options(fmt))


@pytest.mark.parametrize(
    "changed",
    [
        replace(PLAN, prefix=PREFIX[1:]),
        replace(PLAN, prefix=[*PREFIX[:3], segment("memos", "Others.")]),
        replace(PLAN, prefix=[*PREFIX, segment("note", after="memos")]),
        replace(PLAN, history=talk(3)[1:]),
    ],
)
def test_the_prefix_hash_changes_with_the_prefix_and_the_anchor(changed: Arrangement) -> None:
    assert prefix_hash(PLAN, render_options("openai")) != prefix_hash(changed, render_options("openai"))


def test_the_prefix_hash_is_of_one_format() -> None:
    assert len({prefix_hash(PLAN, render_options(fmt)) for fmt in FORMATS}) == len(FORMATS)


def test_a_text_cannot_pose_as_two_segments() -> None:
    def hashed(*texts: str) -> str:
        prefix: list[Segment] = [segment(name, text) for name, text in zip(("system", "user"), texts, strict=False)]
        return prefix_hash(Arrangement(prefix=prefix), render_options("openai"))

    assert hashed("a\n\nb") != hashed("a", "b")
    assert hashed("a", "bc") != hashed("ab", "c")
