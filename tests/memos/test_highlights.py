import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memos.highlights import Highlight, highlights_from_text, render_highlights

CAT = 'Mira named the stray cat "Pepper".'
KEY = "Jonas gave Mira the key to the boathouse."
SISTER = "Jonas told Mira that Lena is alive."


def test_highlights_are_shown_one_line_each_and_numbered() -> None:
    shown = render_highlights([Highlight(CAT, "milestone"), Highlight(KEY)])
    assert shown == f"【Highlight 1】: {CAT}\n【Highlight 2】: {KEY}"


def test_a_persons_lines_are_highlights_without_their_labels() -> None:
    written = f"【Highlight 1】: {CAT}\n\n  {KEY}  \r\n**【highlight 7】** : {SISTER}\n【Highlight 4】:\n"
    assert highlights_from_text(written) == [Highlight(CAT), Highlight(KEY), Highlight(SISTER)]


@pytest.mark.parametrize(
    "line",
    [
        "1. None of it (milestone)",
        "【第3章】 我们去了海边",
        "- **bold**   and `wide`",
        "I'm sorry, Jonas.",
        "x" * 2000,
    ],
)
def test_a_persons_own_words_are_left_alone(line: str) -> None:
    assert highlights_from_text(line) == [Highlight(line)]


@given(st.text())
def test_anything_a_person_writes_can_be_shown_and_edited_again(text: str) -> None:
    written = highlights_from_text(text)
    assert all(len(highlight.text.splitlines()) == 1 for highlight in written)
    assert len(highlights_from_text(render_highlights(written))) == len(written)
