from typing import Any

import pytest

from app.context.segments import Arrangement, Segment
from app.kit.tokens import count_tokens
from tests.context.arrangements import call, entry, render_options, rendered, segment


def messages(arrangement: Arrangement, **style: Any) -> list[dict[str, Any]]:
    return rendered(arrangement, render_options("openai", **style)).messages or []


def test_the_segments_before_the_history_are_one_system_message() -> None:
    arrangement = Arrangement(prefix=[segment("system"), segment("memos")], newest=entry(1))
    assert messages(arrangement) == [
        {"role": "system", "content": "The system.\n\nThe memos."},
        {"role": "user", "content": "Hello."},
    ]


def test_a_callers_segment_has_its_own_role() -> None:
    prefix = [segment("system"), segment("note", after="system", role="assistant"), segment("memos")]
    assert [one["role"] for one in messages(Arrangement(prefix=prefix))] == ["system", "assistant", "system"]


@pytest.mark.parametrize("newest", [[], [{"role": "user", "content": "Hello."}]])
def test_volatile_segments_are_a_system_message_before_newest(newest: list[Any]) -> None:
    volatile: list[Segment] = [segment("recalled"), segment("time")]
    arrangement = Arrangement(history=[entry(1, "assistant")], volatile=volatile, newest=entry(2) if newest else None)
    tail = [{"role": "system", "content": "The recalled.\n\nThe time."}, *newest]
    assert messages(arrangement) == [{"role": "assistant", "content": "Hello."}, *tail]


def test_a_name_is_in_its_field_or_if_invalid_in_the_text() -> None:
    arrangement = Arrangement(
        history=[entry(1, name="Anna-1"), entry(2, name="Anna Müller"), entry(3, "system", name="The GM")]
    )
    assert messages(arrangement) == [
        {"role": "user", "content": "Hello.", "name": "Anna-1"},
        {"role": "user", "content": "Anna Müller: Hello."},
        {"role": "system", "content": "[The GM] Hello."},
    ]


def test_inline_timestamps_put_the_name_into_the_text() -> None:
    arrangement = Arrangement(history=[entry(1, "assistant", name="Sakura")])
    assert messages(arrangement, timestamps="inline") == [
        {"role": "assistant", "content": "[04/01 20:15] Sakura: Hello."}
    ]


def test_the_narrator_is_the_users_text() -> None:
    assert messages(Arrangement(history=[entry(1, "narrator", "It rains.")])) == [
        {"role": "user", "content": "[Narrator] It rains."}
    ]


def test_tool_calls_and_their_results_are_kept_and_counted() -> None:
    calls = [call("0")]
    history = [
        entry(1, "assistant", "", name="Kai", tool_calls=calls),
        entry(2, "tool", "Found.", name="look", tool_call_id="0"),
    ]
    answer = rendered(Arrangement(history=history), render_options("openai"))
    assert answer.messages == [
        {"role": "assistant", "content": None, "name": "Kai", "tool_calls": calls},
        {"role": "tool", "content": "Found.", "tool_call_id": "0"},
    ]
    written = '[{"id": "0", "type": "function", "function": {"name": "look", "arguments": "{}"}}]'
    assert answer.tokens == count_tokens(written) + count_tokens("Found.") + 8


def test_a_result_without_its_call_is_a_user_text() -> None:
    arrangement = Arrangement(history=[entry(1, "tool", "Found.", tool_call_id="0")])
    assert messages(arrangement) == [{"role": "user", "content": "[tool] Found."}]


def test_a_call_without_a_result_is_rendered_as_text() -> None:
    arrangement = Arrangement(history=[entry(1, "assistant", "Wait.", tool_calls=[call("0")])], newest=entry(2))
    assert messages(arrangement)[0] == {"role": "assistant", "content": "Wait.\n[calls look {}]"}


def test_a_callers_segment_never_separates_call_and_result() -> None:
    history = [
        entry(1),
        entry(2, "assistant", "", tool_calls=[call("0")]),
        entry(3, "tool", tool_call_id="0"),
    ]
    note = segment("note", after="in_chat", depth=1)
    roles = [one["role"] for one in messages(Arrangement(history=history, in_chat=[note]))]
    assert roles == ["user", "system", "assistant", "tool"]
