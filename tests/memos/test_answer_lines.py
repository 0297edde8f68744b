"""The lines of an answer, joined to highlights: who begins one, who goes on with it, who belongs to none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memos.answer_lines import AnswerLine, join_lines, read_line
from app.memos.highlights import Category

Joined = list[tuple[str, Category | None]]


def join(*lines: str) -> Joined:
    """Read and join lines; labels count if any line has one."""
    read = [read_line(line) for line in lines]
    joined = join_lines(read, by_label=any(line.labelled for line in read))
    return [(line.text, line.category) for line in joined]


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (["【Highlight 1】: A.", "- B.", "【Highlight 2】: C."], [("A.", None), ("C.", None)]),
        (["- A.", "- B."], [("A.", None), ("B.", None)]),
        (["【1】", "A."], [("A.", None)]),
        (["- A saw", "the cat."], [("A saw the cat.", None)]),
        (["- A saw", "The cat."], [("A saw", None)]),
        (["- A saw.", "the cat."], [("A saw.", None)]),
        (["- A saw", "", "the cat."], [("A saw", None)]),
        (["- A saw", "  - a detail", "the cat."], [("A saw the cat.", None)]),
        (["- A.", "  - a detail.", "- B."], [("A.", None), ("B.", None)]),
        (["  - A.", "- B."], [("A.", None), ("B.", None)]),
        (["- A.", "(milestone)", "- B."], [("A.", "milestone"), ("B.", None)]),
        (["- A.", "(milestone)", "(keepsake)", "- B."], [("A.", "milestone"), ("B.", "keepsake")]),
        (["(keepsake)", "- A.", "- B."], [("A.", "keepsake"), ("B.", "keepsake")]),
        (["(keepsake)", "- (milestone) A.", "- B."], [("A.", "milestone"), ("B.", "keepsake")]),
        (["【1】", "(milestone) A."], [("A.", "milestone")]),
        (["【1】: (milestone)", "(keepsake) A."], [("A.", "milestone")]),
        (["A.", "B."], []),
        ([], []),
    ],
)
def test_lines_are_joined_to_highlights_by_their_form(lines: list[str], joined: Joined) -> None:
    assert join(*lines) == joined


CATEGORIES = st.sampled_from([None, "milestone", "keepsake"])
TEXTS = st.sampled_from(["", "Mira left.", "Mira left", "and came back", "and came back."])
LINES = st.builds(AnswerLine, TEXTS, CATEGORIES, st.integers(0, 2), st.booleans(), st.booleans())


@given(st.lists(LINES), st.booleans())
def test_highlights_are_made_of_the_lines_in_their_order(lines: list[AnswerLine], by_label: bool) -> None:
    said = " ".join(line.text for line in lines)
    joined = join_lines(lines, by_label=by_label)
    at = 0
    for highlight in joined:
        for word in highlight.text.split():
            at = said.index(word, at) + len(word)
    assert len(joined) <= sum(line.labelled if by_label else line.marked for line in lines)


@given(st.lists(LINES), st.booleans())
def test_joining_changes_no_line_that_was_read(lines: list[AnswerLine], by_label: bool) -> None:
    before = [(line.text, line.category) for line in lines]
    join_lines(lines, by_label=by_label)
    assert [(line.text, line.category) for line in lines] == before


@given(st.lists(LINES))
def test_each_labelled_line_begins_a_highlight(lines: list[AnswerLine]) -> None:
    joined = join_lines(lines, by_label=True)
    assert [line.indent for line in joined] == [line.indent for line in lines if line.labelled]
