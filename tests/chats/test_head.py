import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.eligibility import Filters, is_sent
from app.chats.events import MessagesAppended, count_appended
from app.chats.head import Head, NewMessage
from app.chats.settings import effective
from tests.conftest import NOON


def _head() -> Head:
    return Head(UUID(int=1), UUID(int=2), "acme", effective({}), Filters(), last_active_at=NOON)


def advance(head: Head, fresh: Sequence[NewMessage], *, now: datetime, created: bool) -> MessagesAppended:
    return count_appended(head, fresh, now=now, settle_s=0, created=created)


def _message(seq: int, role: str = "user", *, kind: str | None = None, blank: bool = False) -> NewMessage:
    return NewMessage(f"m{seq}", role, "Hello.", 2, NOON, b"identity", b"digest", blank, kind=kind, seq=seq)


@st.composite
def talks(draw: st.DrawFn) -> list[NewMessage]:
    roles = st.sampled_from(["user", "user", "assistant", "assistant", "system", "tool", "narrator"])
    kinds = st.sampled_from([None, None, "thought"])
    marks = draw(st.lists(st.tuples(roles, kinds, st.booleans()), max_size=20))
    return [
        _message(seq, role, kind=kind if role == "assistant" else None, blank=blank)
        for seq, (role, kind, blank) in enumerate(marks, 1)
    ]


def _turns(messages: Sequence[NewMessage]) -> int:
    """A turn is a user's message, or several, and the first reply that is not a thought."""
    said = "".join(
        message.role[0] for message in messages if message.role in ("user", "assistant") and not message.kind
    )
    return len(re.findall("ua", said))


@given(talks())
def test_messages_tokens_turns_and_what_is_sent_are_counted(messages: list[NewMessage]) -> None:
    head = _head()
    advance(head, messages, now=NOON, created=False)
    assert head.head_seq == head.message_count == len(messages)
    assert head.token_count == 2 * len(messages)
    assert head.history_messages == sum(map(is_sent, messages))
    assert head.turn_count == _turns(messages)


@given(talks(), st.lists(st.integers(0, 20)))
def test_the_counts_do_not_depend_on_how_appends_are_split(messages: list[NewMessage], cuts: list[int]) -> None:
    at_once, in_parts = _head(), _head()
    advance(at_once, messages, now=NOON, created=False)
    for start, end in pairwise([0, *sorted(cuts), len(messages)]):
        advance(in_parts, messages[start:end], now=NOON, created=False)
    assert in_parts == at_once


@pytest.mark.parametrize(
    ("roles", "turns"),
    [
        ("", 0),
        ("u", 0),
        ("a", 0),
        ("ua", 1),
        ("au", 0),
        ("aua", 1),
        ("uuu", 0),
        ("uuua", 1),
        ("uaaa", 1),
        ("uaua", 2),
        ("usnta", 1),
    ],
)
def test_a_turn_is_a_users_message_and_the_reply_to_it(roles: str, turns: int) -> None:
    names = {"u": "user", "a": "assistant", "s": "system", "n": "narrator", "t": "tool"}
    head = _head()
    advance(head, [_message(seq, names[role]) for seq, role in enumerate(roles, 1)], now=NOON, created=False)
    assert head.turn_count == turns


def test_a_thought_does_not_count_as_a_reply() -> None:
    head = _head()
    advance(head, [_message(1), _message(2, "assistant", kind="thought")], now=NOON, created=False)
    assert (head.turn_count, head.awaits_reply) == (0, True)
    advance(head, [_message(3, "assistant")], now=NOON, created=False)
    assert (head.turn_count, head.awaits_reply) == (1, False)


def test_advancing_returns_the_former_head_and_message_count() -> None:
    head = _head()
    advance(head, [_message(1), _message(2, "assistant", kind="thought")], now=NOON, created=True)
    fresh = [_message(3), _message(4, "assistant")]
    outcome = advance(head, fresh, now=NOON, created=False)
    assert outcome.head is head
    assert (outcome.former_head_seq, outcome.former_history_messages) == (2, 1)
    assert (head.head_seq, head.history_messages) == (4, 3)
    assert outcome.fresh == fresh


@pytest.mark.parametrize(("silence_s", "cold"), [(-5, False), (0, False), (300, False), (301, True), (86_400, True)])
def test_an_append_is_cold_after_the_cache_has_expired(silence_s: int, cold: bool) -> None:
    later = NOON + timedelta(seconds=silence_s)
    assert advance(_head(), [_message(1)], now=later, created=False).cold is cold
    assert advance(_head(), [_message(1)], now=later, created=True).cold is False


def test_a_clock_that_steps_back_makes_no_chat_older() -> None:
    head = _head()
    advance(head, [_message(1)], now=NOON - timedelta(hours=1), created=False)
    assert head.last_active_at == NOON
    advance(head, [_message(2)], now=NOON + timedelta(hours=1), created=False)
    assert head.last_active_at == NOON + timedelta(hours=1)


def test_an_append_leaves_the_anchor_to_the_cut() -> None:
    head = _head()
    advance(head, [_message(seq) for seq in range(1, 101)], now=NOON + timedelta(days=1), created=False)
    assert (head.anchor_seq, head.cut_waits, head.last_cut, head.cursors) == (1, False, None, {})
