"""Messages that were not read are joined, which changes nothing but how many tokens of the history are left out."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.context.budget import BudgetTooSmallError, fit
from app.context.formats import is_said, render
from app.context.parts import Omission, Parts
from app.context.queries import read_history, read_messages
from app.context.segments import UNREAD, HistoryMessage, Rendered, RenderOptions
from tests.context.arrangements import entry, manners, parts, talk


def store(messages: Sequence[HistoryMessage], budget: float) -> str:
    """The column of the statement: the newest message first, and no text of a message beyond the budget."""
    rows, newer = [], 0
    for one in reversed(messages):
        is_blank = not one.text.strip()
        is_read = newer <= budget or is_blank or one.tokens == 0
        newer += 0 if is_blank else one.tokens
        rows.append([*one[:4], one.text if is_read else None, *one[5:9]])
    return json.dumps(rows)


def list_seqs(messages: Iterable[HistoryMessage]) -> list[int]:
    """The seqs of the messages that these represent."""
    return sorted(seq for one in messages for seq in one.seqs)


def fitted(one: Parts, max_tokens: int, how: RenderOptions) -> tuple[Rendered | int | None, list[str | Omission]]:
    """The context and what it omits; in its place the needed tokens, or None if a text is missing."""
    try:
        chosen = fit(one, max_tokens, how)
    except BudgetTooSmallError as error:
        return error.needed_tokens, []
    if any(message.text is UNREAD for message in chosen.layout.entries):
        return None, []
    return render(chosen.layout), [it.name if it.name == "history" else it for it in chosen.omitted]


@given(parts(), st.integers(0, 200), st.sampled_from([None, 0, 2, 5]), manners())
def test_joined_messages_change_no_context(drawn: Parts, max_tokens: int, keep: int | None, how: RenderOptions) -> None:
    drawn = replace(drawn, keeps_messages=keep)
    said = [*drawn.history, *([drawn.newest] if drawn.newest else [])]
    stored = store(said, max_tokens / how.token_factor + 1)
    alone, joined = list(read_messages(stored)), list(read_history(stored))
    for chosen in (lambda _: True, is_said, lambda one: one.role == "user"):
        assert list_seqs(filter(chosen, joined)) == [one.seq for one in alone if chosen(one)]
    if drawn.newest is not None:
        assert alone.pop() == joined.pop()
    as_read = fitted(replace(drawn, history=alone), max_tokens, how)
    assert fitted(replace(drawn, history=joined), max_tokens, how) == as_read


def test_a_long_history_is_two_messages_and_what_fits() -> None:
    history = talk(5_000)
    joined = read_history(store(history, 100))
    first, second, *others = joined
    assert others == history[-len(others) :]
    assert len(joined) < 60
    left = history[: -len(others)]
    assert [first.seq, second.seq] == [left[-2].seq, left[-1].seq]
    for one in (first, second):
        replaced = [message for message in left if message.role == one.role]
        assert (list(one.seqs), one.tokens) == (
            [message.seq for message in replaced],
            sum(message.tokens for message in replaced),
        )


def test_each_speaker_is_joined_alone() -> None:
    names = ["Mira", None, "Nell", "Mira"]
    history = [entry(seq, "user", "One.", name=name) for seq, name in enumerate(names, start=1)]
    joined = read_history(store([*history, entry(5, "assistant", "Two. " * 99)], 10))
    found = [(one.seq, one.name, len(one.seqs)) for one in joined]
    assert found == [(2, None, 1), (3, "Nell", 1), (4, "Mira", 2), (5, None, 1)]


def test_messages_are_not_joined_across_calls() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    history = [
        entry(1, "user", "One."),
        entry(2, "user", "Two."),
        entry(3, "assistant", "Let me see.", tool_calls=calls),
        entry(4, "tool", "Fog.", tool_call_id="1"),
        entry(5, "user", "Three."),
    ]
    joined = read_history(store([*history, entry(6, "assistant", "Four. " * 99)], 10))
    assert [one.seq for one in joined] == [2, 3, 4, 5, 6]
