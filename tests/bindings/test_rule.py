"""Which reply a tool call belongs to, by the rule alone."""

from dataclasses import dataclass

import pytest

from app.bindings.rule import (
    LogMessage,
    Open,
    Placement,
    Resolved,
    Target,
    choose_placement,
    find_turn_seq,
    hash_text,
    resolve,
)
from app.kit.ids import uuid7
from tests.conftest import NOON


@dataclass(frozen=True)
class Fresh:
    message_id: str
    role: str = "assistant"
    seq: int = 5
    name: str | None = "Kai"
    kind: str | None = None
    tool_calls: str | None = None


def newest(role: str = "assistant", *, seq: int = 4, calls: bool = False) -> LogMessage:
    return LogMessage(seq, f"m{seq}", role, None, None, calls, hash_text("Yes."), NOON)


def waiting(message_id: str | None = None, *, awaits_user: bool = False, next_swipe: bool = False) -> Open:
    return Open(uuid7(), "diary", "Kai", message_id, next_swipe, awaits_user, 4, "m4", 5)


ASKED = Fresh("u", "user", name="Mira")
REPLY = Fresh("r")


def test_a_call_after_a_reply_belongs_to_that_reply() -> None:
    assert choose_placement(newest(), None, Target()) == Placement("m4", 4, hash_text("Yes."))


@pytest.mark.parametrize("after", [newest("user"), newest("tool"), newest("narrator"), newest(calls=True)])
def test_a_call_after_any_other_message_is_open(after: LogMessage) -> None:
    assert choose_placement(after, None, Target()) == Placement(None, 4, is_open=True)


def test_a_call_in_an_empty_chat_depends_on_no_reply() -> None:
    assert choose_placement(None, None, Target()) == Placement(None, 0)


def test_a_named_message_counts_even_if_it_is_older() -> None:
    assert choose_placement(newest(), newest(seq=2), Target("m2")) == Placement("m2", 2, hash_text("Yes."))
    wanted = Placement("m2", 4, next_swipe=True, is_open=True)
    assert choose_placement(newest(), newest(seq=2), Target("m2", next_swipe=True)) == wanted


def test_a_finished_reply_ends_the_turn_before_the_call() -> None:
    for after in (newest("user"), newest("tool"), newest("narrator"), newest(calls=True)):
        assert find_turn_seq(after, None) == 4
    assert find_turn_seq(newest(), None) == 5
    assert find_turn_seq(newest(), newest(seq=2)) == 2
    assert find_turn_seq(None, None) == 0


@pytest.mark.parametrize(("after", "awaits_user"), [(newest("user"), False), (newest(), True), (None, True)])
def test_a_named_message_may_still_be_to_come(after: LogMessage | None, awaits_user: bool) -> None:
    placement = choose_placement(after, None, Target("new"))
    assert (placement.message_id, placement.is_open, placement.awaits_user) == ("new", True, awaits_user)


@pytest.mark.parametrize(
    "passed_over",
    [
        Fresh("call", tool_calls="[]]"),
        Fresh("result", "tool"),
        Fresh("thought", kind="thought"),
        Fresh("story", "narrator"),
        Fresh("other", name="Mira"),
    ],
)
def test_an_open_call_waits_for_the_characters_next_reply(passed_over: Fresh) -> None:
    assert resolve(waiting(), [passed_over]) == Resolved("waits")
    assert resolve(waiting(), [passed_over, REPLY, ASKED]) == Resolved("bound", "r")


def test_a_reply_without_a_name_is_of_any_character() -> None:
    assert resolve(waiting(), [Fresh("r", name=None)]) == Resolved("bound", "r")


def test_a_user_message_before_the_reply_drops_an_open_call() -> None:
    assert resolve(waiting(), [ASKED, REPLY]) == Resolved("dropped")
    assert resolve(waiting("m2", next_swipe=True), [ASKED, REPLY]) == Resolved("dropped")


def test_a_named_call_may_come_before_the_message_it_answers() -> None:
    one = waiting("r", awaits_user=True)
    assert resolve(one, [ASKED, REPLY]) == Resolved("bound", "r")
    assert resolve(one, [ASKED]) == Resolved("waits", awaits_user=False)
    assert resolve(one, [ASKED, ASKED]) == Resolved("dropped")
    assert resolve(waiting("r"), [ASKED]) == Resolved("dropped")


def test_a_named_call_waits_for_its_own_message_alone() -> None:
    assert resolve(waiting("r"), [Fresh("another")]) == Resolved("waits")
    assert resolve(waiting("u"), [ASKED]) == Resolved("dropped", "u")
    assert resolve(waiting("m2", next_swipe=True), [Fresh("m9")]) == Resolved("waits")


def test_a_message_inserted_before_the_call_does_not_count() -> None:
    before = [Fresh("u", "user", seq=3), Fresh("other", seq=4)]
    assert resolve(waiting(), [*before, REPLY]) == Resolved("bound", "r")
