from typing import Any

from app.context.format_anthropic import CLOSING, OPENING
from app.context.segments import Plan, Rendered
from tests.context.plans import call, entry, manner, rendered, segment


def said(plan: Plan, *, prefill: bool = False, **speech: Any) -> list[tuple[str, list[str]]]:
    """Role and texts of every message."""
    return read(rendered(plan, manner("anthropic", prefill=prefill, **speech)))


def read(answer: Rendered) -> list[tuple[str, list[str]]]:
    return [(one["role"], [block["text"] for block in one["content"]]) for one in answer.messages or []]


def test_everything_before_the_history_is_in_system_a_block_each() -> None:
    note = segment("note", after="system", role="user")
    answer = rendered(Plan(prefix=[segment("system"), note, segment("memos")], newest=entry(1)), manner("anthropic"))
    assert [block["text"] for block in answer.system or []] == ["The system.", "[User] The note.", "The memos."]
    assert read(answer) == [("user", ["Hello."])]


def test_neighbours_of_one_role_are_blocks_of_one_message() -> None:
    history = [entry(1, text="One."), entry(2, "narrator", "It rains."), entry(3, "system", "Be kind.")]
    assert said(Plan(history=history, newest=entry(4))) == [
        ("user", ["One.", "[Narrator] It rains.", "[System] Be kind.", "Hello."])
    ]


def test_a_history_that_begins_with_the_assistant_gets_a_short_user_text_before_it() -> None:
    assert said(Plan(history=[entry(1, "assistant")], newest=entry(2))) == [
        ("user", [OPENING]),
        ("assistant", ["Hello."]),
        ("user", ["Hello."]),
    ]


def test_a_conversation_that_ends_with_the_assistant_gets_a_user_text_unless_it_is_a_prefill() -> None:
    plan = Plan(history=[entry(1), entry(2, "assistant", "And then, ")])
    assert said(plan) == [("user", ["Hello."]), ("assistant", ["And then,"]), ("user", [CLOSING])]
    assert said(plan, prefill=True) == [("user", ["Hello."]), ("assistant", ["And then,"])]


def test_what_the_assistant_said_reads_the_same_when_it_is_no_longer_the_last() -> None:
    history = [entry(1), entry(2, "assistant", "And then, ")]
    assert said(Plan(history=history, newest=entry(3)))[1] == said(Plan(history=history), prefill=True)[1]


def test_volatile_segments_are_blocks_before_the_newest_text_in_its_message() -> None:
    volatile = [segment("recalled"), segment("time")]
    plan = Plan(history=[entry(1), entry(2, "assistant")], volatile=volatile, newest=entry(3, text="New."))
    assert said(plan)[-1] == ("user", ["The recalled.", "The time.", "New."])


def test_without_newest_volatile_segments_go_into_the_closing_text_or_into_the_last_user_message() -> None:
    plan = Plan(history=[entry(1), entry(2, "assistant")], volatile=[segment("time")])
    assert said(plan)[-1] == ("user", ["The time.", CLOSING])
    assert said(plan, prefill=True) == [("user", ["The time.", "Hello."]), ("assistant", ["Hello."])]


def test_a_prefill_without_any_user_message_has_volatile_segments_before_the_opening_text() -> None:
    plan = Plan(history=[entry(1, "assistant")], volatile=[segment("time")])
    assert said(plan, prefill=True)[0] == ("user", ["The time.", OPENING])


def test_a_history_that_ends_with_a_tool_has_volatile_segments_at_its_end() -> None:
    plan = Plan(history=[entry(1, "tool", "Found.", name="look")], volatile=[segment("time")])
    assert said(plan) == [("user", ["[look] Found.", "The time."])]


def test_tool_calls_and_their_results_are_told_in_text() -> None:
    history = [
        entry(1),
        entry(2, "assistant", "", tool_calls=[call("0", "look", '{"at": "sky"}')]),
        entry(3, "tool", "Clouds.", tool_call_id="0"),
    ]
    assert said(Plan(history=history))[1:] == [
        ("assistant", ['[calls look {"at": "sky"}]']),
        ("user", ["[look] Clouds."]),
    ]


def test_every_given_name_but_the_only_characters_own_is_written() -> None:
    plan = Plan(history=[entry(1, name="Mira"), entry(2, "assistant", name="Sakura")], newest=entry(3))
    assert said(plan, character="Sakura")[:2] == [("user", ["Mira: Hello."]), ("assistant", ["Hello."])]
    assert said(plan)[1] == ("assistant", ["Sakura: Hello."])


def test_a_callers_segment_in_the_chat_is_said_in_its_role_or_marked() -> None:
    notes = [segment("a", after="in_chat", role="user"), segment("b", after="in_chat")]
    assert said(Plan(newest=entry(1), in_chat=notes)) == [("user", ["Hello.", "The a.", "[System] The b."])]


def test_a_callers_last_word_of_the_assistant_is_a_prefill() -> None:
    plan = Plan(newest=entry(1), in_chat=[segment("a", "Well, ", after="in_chat", role="assistant")])
    assert said(plan, prefill=True) == [("user", ["Hello."]), ("assistant", ["Well,"])]
    assert said(plan)[-1] == ("user", [CLOSING])


def test_volatile_segments_without_a_conversation_are_a_message_of_the_user() -> None:
    assert said(Plan(volatile=[segment("time")])) == [("user", ["The time."])]
