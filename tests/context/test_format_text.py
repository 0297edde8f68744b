"""The formats that people read: one text, and a list of segments."""

from dataclasses import replace

import pytest

from app.context.segments import Arrangement, Format
from tests.context.arrangements import call, entry, render_options, rendered, segment
from tests.talk import FORMATS

PLAN = Arrangement(
    prefix=[segment("system"), segment("memos", sources=("memo:1", "memo:2"))],
    history=[entry(1, "user", "Look!"), entry(2, "assistant", "Where?\nThere?")],
    volatile=[segment("time")],
    newest=entry(3, text="Up."),
)


def test_the_text_is_segments_and_lines_in_order() -> None:
    answer = rendered(PLAN, render_options("text", character="Sakura"))
    assert answer.text == "The system.\n\nThe memos.\n\nUser: Look!\nSakura: Where?\nThere?\n\nThe time.\n\nUser: Up."


def test_a_segment_in_the_chat_names_its_speaker() -> None:
    arrangement = Arrangement(
        in_chat=[segment("a", after="in_chat", role="user", depth=1), segment("b", after="in_chat")]
    )
    assert rendered(replace(arrangement, newest=entry(1)), render_options("text")).text == (
        "[User] The a.\n\nUser: Hello.\n\n[System] The b."
    )


def test_tools_and_the_narrator_are_lines_too() -> None:
    history = [
        entry(1, "narrator", "It rains."),
        entry(2, "assistant", "", tool_calls=[call("0")]),
        entry(3, "tool", "Found.", tool_call_id="0"),
    ]
    assert rendered(Arrangement(history=history), render_options("text")).text == (
        "[Narrator] It rains.\nAssistant: [calls look {}]\n[look] Found."
    )


def test_each_segment_has_its_role_tokens_and_sources() -> None:
    rows = rendered(PLAN, render_options("segments")).segments
    assert [(row["name"], row["role"], row["text"], row["cacheable"], row["sources"]) for row in rows] == [
        ("system", "system", "The system.", True, []),
        ("memos", "system", "The memos.", True, ["memo:1", "memo:2"]),
        ("history", None, "User: Look!\nAssistant: Where?\nThere?", True, ["message:m1", "message:m2"]),
        ("time", "system", "The time.", False, []),
        ("newest", "user", "Up.", False, ["message:m3"]),
    ]


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_listed_tokens_and_4_a_piece_are_all_the_tokens(fmt: Format) -> None:
    answer = rendered(PLAN, render_options(fmt))
    assert sum(row["tokens"] for row in answer.segments) + 4 * 6 == answer.tokens


def test_newest_is_cacheable_if_nothing_volatile_precedes_it() -> None:
    assert rendered(replace(PLAN, volatile=[]), render_options("openai")).segments[-1]["cacheable"]
