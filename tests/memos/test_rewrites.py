"""Which batches are rewritten when their messages change: decided from what their ranges say now."""

from typing import Any
from uuid import UUID

from app.chats.eligibility import Filters
from app.chats.head import RangeMessage
from app.layers.derived import DerivedRow, Rehashed
from app.memos.changes import list_rewrites
from tests.chats.ranges import message

MEMO = UUID(int=7)
WAS, IS = b"was", b"is"


def batch(*messages: RangeMessage, leads_to: str | None = "m1", now: bytes = WAS) -> Rehashed[dict[str, Any]]:
    row: dict[str, Any] = {"memo_id": MEMO, "first_message_id": leads_to}
    return Rehashed(DerivedRow(row, str(MEMO), 1, 8, Filters(), WAS, WAS), now, messages)


def test_a_batch_that_says_the_same_is_left_alone() -> None:
    assert list_rewrites([batch(message(1), message(2))]) == []


def test_a_batch_that_says_something_else_gets_its_hash() -> None:
    assert list_rewrites([batch(message(1), now=IS)]) == [(MEMO, IS, "m1")]


def test_a_memo_leads_to_the_first_message_that_is_summarised() -> None:
    hidden = message(1, hidden_by="user")
    assert list_rewrites([batch(hidden, message(2))]) == [(MEMO, WAS, "m2")]
    assert list_rewrites([batch(hidden)]) == [], "without any, it leads to the first one"
    assert list_rewrites([batch()]) == [(MEMO, WAS, None)]
