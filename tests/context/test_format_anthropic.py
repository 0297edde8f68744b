from typing import Any

from app.context.format_anthropic import CLOSING, OPENING
from app.context.segments import Arrangement, Rendered
from tests.context.arrangements import call, entry, render_options, rendered, segment


def said(arrangement: Arrangement, *, prefill: bool = False, **style: Any) -> list[tuple[str, list[str]]]:
    """Role and texts of every message."""
    return read(rendered(arrangement, render_options("anthropic", prefill=prefill, **style)))


def read(answer: Rendered) -> list[tuple[str, list[str]]]:
    return [(one["role"], [block["text"] for block in one["content"]]) for one in answer.messages or []]


def test_each_segment_before_the_history_is_a_system_block() -> None:
    note = segment("note", after="system", role="user")
    answer = rendered(
        Arrangement(prefix=[segment("system"), note, segment("memos")], newest=entry(1)), render_options("anthropic")
    )
    assert [block["text"] for block in answer.system or []] == ["The system.", "[User] The note.", "The memos."]
    assert read(answer) == [("user", ["Hello."])]


def test_neighbours_of_one_role_are_blocks_of_one_message() -> None:
    history = [entry(1, text="One."), entry(2, "narrator", "It rains."), entry(3, "system", "Be kind.")]
    assert said(Arrangement(history=history, newest=entry(4))) == [
        ("user", ["One.", "[Narrator] It rains.", "[System] Be kind.", "Hello."])
    ]


def test_a_short_user_text_precedes_a_history_of_the_assistant() -> None:
    assert said(Arrangement(history=[entry(1, "assistant")], newest=entry(2))) == [
        ("user", [OPENING]),
        ("assistant", ["Hello."]),
        ("user", ["Hello."]),
    ]


def test_a_user_text_follows_an_assistants_end_unless_prefilled() -> None:
    arrangement = Arrangement(history=[entry(1), entry(2, "assistant", "And then, ")])
    assert said(arrangement) == [("user", ["Hello."]), ("assistant", ["And then,"]), ("user", [CLOSING])]
    assert said(arrangement, prefill=True) == [("user", ["Hello."]), ("assistant", ["And then,"])]


def test_an_assistants_message_renders_the_same_later() -> None:
    history = [entry(1), entry(2, "assistant", "And then, ")]
    assert said(Arrangement(history=history, newest=entry(3)))[1] == said(Arrangement(history=history), prefill=True)[1]


def test_volatile_segments_are_blocks_before_the_newest_text() -> None:
    volatile = [segment("recalled"), segment("time")]
    arrangement = Arrangement(
        history=[entry(1), entry(2, "assistant")], volatile=volatile, newest=entry(3, text="New.")
    )
    assert said(arrangement)[-1] == ("user", ["The recalled.", "The time.", "New."])


def test_without_newest_they_go_into_the_last_user_text() -> None:
    arrangement = Arrangement(history=[entry(1), entry(2, "assistant")], volatile=[segment("time")])
    assert said(arrangement)[-1] == ("user", ["The time.", CLOSING])
    assert said(arrangement, prefill=True) == [("user", ["The time.", "Hello."]), ("assistant", ["Hello."])]


def test_before_a_prefill_they_precede_the_opening_text() -> None:
    arrangement = Arrangement(history=[entry(1, "assistant")], volatile=[segment("time")])
    assert said(arrangement, prefill=True)[0] == ("user", ["The time.", OPENING])


def test_a_history_ending_with_a_tool_has_them_at_its_end() -> None:
    arrangement = Arrangement(history=[entry(1, "tool", "Found.", name="look")], volatile=[segment("time")])
    assert said(arrangement) == [("user", ["[look] Found.", "The time."])]


def test_tool_calls_and_their_results_are_rendered_as_text() -> None:
    history = [
        entry(1),
        entry(2, "assistant", "", tool_calls=[call("0", "look", '{"at": "sky"}')]),
        entry(3, "tool", "Clouds.", tool_call_id="0"),
    ]
    assert said(Arrangement(history=history))[1:] == [
        ("assistant", ['[calls look {"at": "sky"}]']),
        ("user", ["[look] Clouds."]),
    ]


def test_each_name_except_the_only_characters_is_written() -> None:
    arrangement = Arrangement(history=[entry(1, name="Mira"), entry(2, "assistant", name="Sakura")], newest=entry(3))
    assert said(arrangement, character="Sakura")[:2] == [("user", ["Mira: Hello."]), ("assistant", ["Hello."])]
    assert said(arrangement)[1] == ("assistant", ["Sakura: Hello."])


def test_a_callers_segment_in_the_chat_has_its_role_or_a_mark() -> None:
    notes = [segment("a", after="in_chat", role="user"), segment("b", after="in_chat")]
    assert said(Arrangement(newest=entry(1), in_chat=notes)) == [("user", ["Hello.", "The a.", "[System] The b."])]


def test_a_callers_last_word_of_the_assistant_is_a_prefill() -> None:
    arrangement = Arrangement(newest=entry(1), in_chat=[segment("a", "Well, ", after="in_chat", role="assistant")])
    assert said(arrangement, prefill=True) == [("user", ["Hello."]), ("assistant", ["Well,"])]
    assert said(arrangement)[-1] == ("user", [CLOSING])


def test_volatile_segments_without_messages_are_a_user_message() -> None:
    assert said(Arrangement(volatile=[segment("time")])) == [("user", ["The time."])]
