"""The invariants of a check with two releases find what they are there for."""

from typing import Any

import orjson

from tests.talk import Json
from tests.upgrade.invariants import list_errors, list_lost, list_memo_faults

SENT = {"m1": "One.", "m2": "Two."}
KEPT: list[Json] = [{"id": "m1", "seq": 1, "content": "One."}, {"id": "m2", "seq": 2, "content": "Two."}]


def memo(number: int, first_seq: int, **given: Any) -> Json:
    made = {"number": number, "first_seq": first_seq, "last_seq": first_seq + 7, "status": "ready", "stale": False}
    return made | given


def test_a_whole_conversation_has_no_fault() -> None:
    assert list_lost(SENT, KEPT) == []


def test_lost_doubled_and_changed_messages_are_found() -> None:
    assert list_lost(SENT, KEPT[:1]) == ["message m2 is lost"]
    assert list_lost({"m1": "One."}, KEPT) == ["message m2 was never sent"]
    assert list_lost(SENT | {"m2": "Edited."}, KEPT) == ["message m2 has another text"]
    assert list_lost(SENT, [*KEPT, KEPT[1] | {"seq": 3}]) == ["a message is doubled"]
    assert list_lost(SENT, [KEPT[0], KEPT[1] | {"seq": 3}]) == ["the seqs are [1, 3]"]


def test_a_book_with_one_memo_for_each_batch_has_no_fault() -> None:
    for messages, memos in ((7, []), (8, [memo(1, 1)]), (23, [memo(1, 1), memo(2, 9)])):
        assert list_memo_faults(memos, messages) == []


def test_missing_doubled_and_unfinished_memos_are_found() -> None:
    assert list_memo_faults([memo(1, 1)], 16) == ["the batches are [(1, 8)]"]
    assert list_memo_faults([memo(1, 1), memo(2, 1)], 8) == ["the batches are [(1, 8), (1, 8)]"]
    assert list_memo_faults([memo(1, 1, last_seq=7), memo(2, 9)], 16) == ["the batches are [(1, 7), (9, 16)]"]
    assert list_memo_faults([memo(1, 1), memo(1, 9)], 16) == ["two memos have one number"]
    assert list_memo_faults([memo(1, 1, status="failed")], 8) == ["memo 1 is failed"]
    assert list_memo_faults([memo(1, 1, stale=True)], 8) == ["memo 1 is stale"]


def test_errors_and_foreign_lines_of_a_log_are_found() -> None:
    fine, bad = (orjson.dumps({"level": level, "message": "m"}) for level in ("warning", "error"))
    assert list_errors([fine, bad, b"Traceback (most recent call last):"]) == [
        bad.decode(),
        "Traceback (most recent call last):",
    ]
