"""What the demo writes about memos that its own conversation does not have."""

from datetime import UTC, datetime
from typing import Any

from app.demo.bill import Account
from app.demo.show import word_book, word_context, word_savings

TIMES = {1: datetime(2025, 12, 31, 23, 30, tzinfo=UTC), 8: datetime(2026, 1, 2, 8, 0, tzinfo=UTC)}


def memo(**fields: Any) -> dict[str, Any]:
    return {
        "number": 1,
        "first_seq": 1,
        "last_seq": 8,
        "after_seq": None,
        "status": "ready",
        "origin": "model",
        "model": "small-1",
        "error": None,
        "in_window": True,
        "highlights": [{"category": "turning_point", "text": "Kai told Mira who wrote the letters."}],
        **fields,
    }


def book(*memos: dict[str, Any], zone: str = "UTC", anchor_seq: int = 9) -> str:
    return "\n".join(word_book(memos, TIMES, zone, anchor_seq))


def test_a_highlight_has_its_category_and_a_memo_its_author() -> None:
    text = book(memo())
    assert "written by small-1" in text
    assert "· Kai told Mira who wrote the letters. (turning point)" in text


def test_dates_are_those_of_the_chats_own_zone() -> None:
    assert "Wed 31 Dec 2025 – Fri 2 Jan 2026 · messages 1–8" in book(memo())
    assert "Thu 1 Jan – Fri 2 Jan 2026 · messages 1–8" in book(memo(), zone="Asia/Tokyo")


def test_a_memory_without_messages_stands_after_one() -> None:
    text = book(memo(origin="person", first_seq=None, last_seq=None, after_seq=8))
    assert "after message 8 · written by a person" in text


def test_a_memo_that_could_not_be_made_says_why() -> None:
    text = book(memo(status="failed", error="no answer in 60 s", highlights=[], in_window=False))
    assert "— no memo —" in text
    assert "failed: no answer in 60 s" in text


def test_memos_are_parted_by_what_has_become_of_them() -> None:
    text = book(memo(in_window=False), memo(number=2), memo(number=3, in_window=False, last_seq=8), anchor_seq=5)
    assert [line for line in text.splitlines() if line.startswith("— ")] == [
        "— waiting: their messages are still sent word for word —",
        "— in the prompt —",
        "— waiting: their messages are still sent word for word —",
    ]
    assert "— in the book alone: they have left the prompt —" in book(memo(in_window=False), anchor_seq=9)


def test_an_empty_chat_has_an_empty_book_and_context_and_saves_nothing() -> None:
    context = {
        "tokens": 0,
        "max_tokens": 32_000,
        "segments": [],
        "memo_window": {"memos": 0, "first_seq": None, "last_seq": None, "gaps": []},
    }
    assert "0 memos" in book()
    assert "0 of at most 32,000 tokens" in "\n".join(word_context(context))
    assert "over 0 calls" in "\n".join(word_savings(Account()))


def test_a_long_segment_is_shortened_in_the_middle_and_gaps_are_told() -> None:
    context = {
        "tokens": 110,
        "max_tokens": 200,
        "segments": [
            {
                "name": "history",
                "tokens": 100,
                "text": "\n".join(f"line {number}" for number in range(20)),
                "cacheable": True,
                "sources": ["message:a", "message:b"],
            }
        ],
        "history": {"anchor_seq": 17},
        "memo_window": {"memos": 0, "first_seq": None, "last_seq": None, "gaps": [[1, 8], [16, 16]]},
    }
    lines = list(word_context(context))
    assert "  history          100  2 messages word for word, from number 17 on" in lines
    assert "  (overhead)        10  4 for each message and segment" in lines
    assert "  Nothing stands for messages 1–8, 16: their memos are missing." in lines
    assert lines[-8:] == [
        *(f"  line {number}" for number in range(4)),
        "  [… 13 more lines …]",
        *(f"  line {number}" for number in range(17, 20)),
    ]
