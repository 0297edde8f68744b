"""What is shown of a diary: its last lines, and no entry in part."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.diary.wording import HEADING, Excerpt, count_lines, cut_to_lines, word_date, word_diary, word_entry

letters = st.text(st.sampled_from("ab "), min_size=1, max_size=3).filter(str.strip)
contents = st.lists(letters, min_size=1, max_size=5).map("\n".join)
entries = st.lists(contents.map(lambda content: word_entry(content, "04/01")), max_size=8)
folded_texts = st.lists(letters.map(str.strip), max_size=6).map("\n".join)


def test_an_entry_has_its_date_as_its_heading() -> None:
    assert word_entry("He remembered my birthday.", "04/01") == "## 04/01 — memo entry\nHe remembered my birthday."


@pytest.mark.parametrize(
    ("zone", "date"), [("UTC", "03/31"), ("Asia/Tokyo", "04/01"), ("America/Los_Angeles", "03/31")]
)
def test_the_date_is_that_of_the_chats_time_zone(zone: str, date: str) -> None:
    assert word_date(datetime(2026, 3, 31, 16, 0, tzinfo=UTC), zone) == date


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r", "\u2028", "\x0b"])
def test_every_line_ending_ends_a_line(ending: str) -> None:
    entry = word_entry(f"\n one{ending}two \n", "04/01")
    assert entry == "## 04/01 — memo entry\none\ntwo"
    assert count_lines(entry) == 3


def test_a_short_diary_is_shown_whole() -> None:
    told = [word_entry("One.", "04/01"), word_entry("Two.", "04/02")]
    assert word_diary(HEADING, cut_to_lines("03/30: Before.", told, 7)) == (
        "## Diary\n\n03/30: Before.\n\n## 04/01 — memo entry\nOne.\n\n## 04/02 — memo entry\nTwo."
    )


def test_an_empty_diary_has_no_heading() -> None:
    assert word_diary(HEADING, cut_to_lines("", [], 50)) == ""


def test_the_newest_entry_alone_may_be_cut_to_its_last_lines() -> None:
    long = word_entry("one\ntwo\nthree", "04/02")
    assert cut_to_lines("Before.", [word_entry("x", "04/01"), long], 2) == Excerpt("", ("two\nthree",))


def _slowly(folded: str, told: list[str], limit: int) -> Excerpt:
    """Of every run of newest entries, the longest that fits below the heading; then as many last lines before it."""
    for first in range(len(told) + 1):
        kept = told[first:]
        if len(word_diary(HEADING, Excerpt("", kept)).split("\n")) - 2 <= limit and kept:
            lines = folded.split("\n") if folded and first == 0 else []
            for begin in range(len(lines)):
                excerpt = Excerpt("\n".join(lines[begin:]), kept)
                if len(word_diary(HEADING, excerpt).split("\n")) - 2 <= limit:
                    return excerpt
            return Excerpt("", kept)
    if told:
        return Excerpt("", ["\n".join(told[-1].split("\n")[-limit:])])
    return Excerpt("\n".join(folded.split("\n")[-limit:]), [])


@given(folded_texts, entries, st.integers(1, 20))
def test_the_last_lines_are_shown_as_a_slow_count_finds_them(folded: str, told: list[str], limit: int) -> None:
    excerpt = cut_to_lines(folded, told, limit)
    slow = _slowly(folded, told, limit)
    assert (excerpt.folded, list(excerpt.entries)) == (slow.folded, list(slow.entries))


@given(folded_texts, entries, st.integers(1, 20))
def test_the_segment_has_whole_entries_within_its_line_limit(folded: str, told: list[str], limit: int) -> None:
    excerpt = cut_to_lines(folded, told, limit)
    text = word_diary(HEADING, excerpt)
    assert not text or text.startswith(f"{HEADING}\n\n")
    assert count_lines(text.removeprefix(f"{HEADING}\n\n")) <= limit
    if not told or count_lines(told[-1]) <= limit:
        assert list(excerpt.entries) == told[len(told) - len(excerpt.entries) :]
    assert folded.endswith(excerpt.folded)
