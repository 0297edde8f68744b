"""The model of what has to be there knows each fault that it exists to find."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.soak.ledger import Ledger, Line, Said, Violation, check_book, check_context
from tests.talk import Json


def said(n: int, **fields: Any) -> Said:
    return Said(f"m{n}", "user" if n % 2 else "assistant", f"lamp w{n}w", seq=n, **fields)


def listed(line: Line) -> list[Json]:
    """The line as the API lists it."""
    return [
        {
            "id": each.id,
            "role": each.role,
            "content": each.text,
            "swipes": list(each.texts),
            "hidden_by": "user" if each.hidden else None,
            "excluded": each.excluded,
            "seq": each.seq,
        }
        for each in line.messages
    ]


FOUR = Line(tuple(said(n) for n in range(1, 5)))


def test_the_acknowledged_line_fits() -> None:
    assert Ledger(FOUR).settle(listed(FOUR)) is False


@pytest.mark.parametrize(
    "spoil",
    [
        lambda items: items[:-1],
        lambda items: [*items, items[-1] | {"seq": 5}],
        lambda items: [items[1], items[0], *items[2:]],
        lambda items: [items[0] | {"content": "lamp w9w"}, *items[1:]],
        lambda items: [items[0] | {"hidden_by": "user"}, *items[1:]],
        lambda items: [*items[:-1], items[-1] | {"seq": 3}],
        lambda items: [*items[:-1], items[-1] | {"seq": 9}],
    ],
    ids=["lost", "doubled", "reordered", "old text", "hidden", "same seq", "other seq"],
)
def test_a_listing_that_differs_is_a_violation(spoil: Callable[[list[Json]], list[Json]]) -> None:
    with pytest.raises(Violation):
        Ledger(FOUR).settle(spoil(listed(FOUR)))


@pytest.mark.parametrize("moved", [True, False])
def test_lines_with_the_same_messages_differ_by_id(moved: bool) -> None:
    ledger = Ledger(FOUR.note("I keep p7p in mind."))
    ledger.doubt(FOUR)
    assert ledger.settle(listed(FOUR), moved=moved) is moved
    assert ("p7p" in ledger.now.words) is not moved


@pytest.mark.parametrize("applied", [True, False])
def test_a_request_in_doubt_is_decided_by_what_is_there(applied: bool) -> None:
    ledger = Ledger(FOUR)
    ledger.doubt(FOUR.delete("m2"))
    there = FOUR.delete("m2") if applied else FOUR
    assert ledger.settle(listed(there)) is applied
    assert ledger.now == there
    with pytest.raises(Violation):
        ledger.settle(listed(FOUR if applied else FOUR.delete("m2")))


def test_half_of_a_request_in_doubt_is_a_violation() -> None:
    ledger = Ledger(FOUR)
    ledger.doubt(FOUR.append([said(5), said(6)]))
    with pytest.raises(Violation, match="differ in"):
        ledger.settle(listed(FOUR.append([said(5)])))


def test_an_edit_replaces_the_selected_swipe() -> None:
    line = FOUR.change("m2", text="other w7w", swipes=("lamp w2w", "other w7w")).change("m2", text="new w8w")
    assert line.messages[1].swipes == ("lamp w2w", "new w8w")


def context(*ids: str, text: str = "lamp w1w lamp w2w lamp w3w lamp w4w", tokens: int = 50) -> Json:
    sources = [f"message:{message_id}" for message_id in ids]
    return {"tokens": tokens, "segments": [{"name": "history", "text": text, "sources": sources}]}


def test_a_context_of_the_line_fits() -> None:
    check_context(FOUR, context("m1", "m2", "m3", "m4"), 100)
    check_context(FOUR.note("told p5p"), context("m4", text="told p5p, lamp w4w"), 100)


@pytest.mark.parametrize(
    "found",
    [
        context("m1", tokens=101),
        context("m1", text="lamp w1w and w77w"),
        context("m1", text="told p5p lamp w1w"),
        context("m1", "m7"),
        context("m2", "m1"),
        context("m2", "m2"),
        context("m1", "m2", text="lamp w1w"),
    ],
    ids=["budget", "foreign word", "foreign note", "foreign message", "order", "twice", "missing text"],
)
def test_a_context_with_a_fault_is_a_violation(found: Json) -> None:
    with pytest.raises(Violation):
        check_context(FOUR, found, 100)


def test_a_hidden_message_in_the_history_is_a_violation() -> None:
    with pytest.raises(Violation):
        check_context(FOUR.hide(2, 3, hidden=True), context("m1", "m2"), 100)


def memo(first: int, last: int, **fields: Any) -> Json:
    return {"first_seq": first, "last_seq": last, "status": "ready", "stale": False, "edited": False} | fields


def test_a_whole_book_fits() -> None:
    check_book(Ledger(FOUR), [memo(1, 2), memo(3, 4)], every=2, calm=True)
    check_book(Ledger(FOUR), [memo(1, 2, status="pending")], every=3, calm=False)


@pytest.mark.parametrize(
    ("memos", "every"),
    [
        ([memo(1, 2)], 2),
        ([memo(1, 3), memo(3, 4)], 2),
        ([memo(1, 2), memo(4, 4)], 2),
        ([memo(1, 2), memo(3, 4, status="pending")], 2),
        ([memo(1, 2), memo(3, 4, stale=True)], 2),
    ],
    ids=["missing batch", "overlap", "gap", "not made", "stale"],
)
def test_a_book_with_a_fault_is_a_violation(memos: list[Json], every: int) -> None:
    with pytest.raises(Violation):
        check_book(Ledger(FOUR), memos, every=every, calm=True)
