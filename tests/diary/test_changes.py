"""What changed messages mean for diaries: decided from the pairs and the rows alone."""

from typing import Any

from app.chats.eligibility import Filters
from app.diary.changes import find_first_turned, group_by_diary
from app.layers.derived import DerivedRow, Rehashed
from tests.chats.ranges import message


def test_turns_are_recounted_from_the_first_change_of_them() -> None:
    edited = (message(2), message(2, digest=b"new"))
    gone = (message(5), message(5, deleted=True))
    back = (message(4, deleted=True), message(4))
    thought = (message(3), message(3, kind="thought"))
    assert find_first_turned([edited]) is None
    assert find_first_turned([edited, thought, gone]) == 3
    assert find_first_turned([edited, gone]) == 5
    assert find_first_turned([back, gone]) == 4


def test_entries_of_the_service_are_grouped_by_character() -> None:
    def entry(name: str, number: int, *, keeps_text: bool = False) -> Rehashed[dict[str, Any]]:
        row: dict[str, Any] = {"character": name, "number": number}
        return Rehashed(DerivedRow(row, "", 1, 2, Filters(), b"", b"", keeps_text), b"new", ())

    changed = [entry("Mira", 3), entry("Kai", 4), entry("Mira", 5, keeps_text=True), entry("Kai", 6)]
    assert group_by_diary(changed) == {"Kai": [4, 6], "Mira": [3]}
    assert group_by_diary([]) == {}
