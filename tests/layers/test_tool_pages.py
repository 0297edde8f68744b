from hypothesis import given
from hypothesis import strategies as st

from app.kit.tokens import count_tokens
from app.layers.tool_pages import MAX_PAGE_TOKENS, word_page

AGAIN = "`get_facts` with page"


def page(lines: list[str], number: int = 1, heading: str | None = None) -> str:
    return word_page(heading, lines, number, again=AGAIN, count_tokens=count_tokens)


def test_a_short_answer_is_one_page() -> None:
    assert page(["- a: 1", "- b: 2"], heading="Facts:") == "Facts:\n- a: 1\n- b: 2"
    assert page(["- a: 1"], 2) == "There is no page 2; the last one is 1."


def test_a_line_that_is_too_long_is_a_page_of_its_own() -> None:
    lines = ["- a: 1", f"- b: {'lamp ' * 5_000}", "- c: 3"]
    assert page(lines) == "- a: 1\n2 more. To read on, call `get_facts` with page 2."
    assert page(lines, 3) == "- c: 3"


@given(st.lists(st.text("ab \U0001f600", max_size=300).map(lambda text: f"- {text}" * 20), max_size=40))
def test_the_pages_have_all_lines_in_order(lines: list[str]) -> None:
    found: list[str] = []
    number = 1
    while len(found) < len(lines):
        text = page(lines, number)
        assert count_tokens(text) <= MAX_PAGE_TOKENS or text.count("\n") <= 1
        *shown, note = text.split("\n")
        found += shown if "more. To read on" in note else [*shown, note]
        number += 1
    assert found == lines
