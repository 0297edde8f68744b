"""Quoted speech is told from narration, whatever marks a language uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.summarising.judging.speech import begins_with_action, divide


@pytest.mark.parametrize(
    "quoted",
    [
        "“I will”",
        '"I will"',
        "„I will“",
        "„I will”",
        "”I will”",
        "«I will»",
        "« I will »",
        "»I will«",
        "‹I will›",
        "「I will」",
        "『I will』",
        "‘I will’",
        "'I will'",
        "‘I won’t, I will’",
        "'I won't, I will'",
        "‚I will‘",
        "＂I will＂",
    ],
)
def test_every_kind_of_quotation_is_taken_out(quoted: str) -> None:
    divided = divide(f"Then Kai said {quoted}, and Mira laughed.\nThey left.")
    assert divided.narration == "Then Kai said …, and Mira laughed.\nThey left."
    assert divided.speech[0].endswith("I will") or divided.speech[0].strip() == "I will"


@pytest.mark.parametrize(
    "text",
    ["Kai's brother and the boys' room weren't far.", "It’s Mira’s lamp, isn’t it.", "Five feet 6' tall.", "5 > 3"],
)
def test_an_apostrophe_opens_no_quotation(text: str) -> None:
    assert divide(text).narration == text


def test_a_quotation_without_an_end_takes_the_line() -> None:
    divided = divide("Kai said “I will come.\nMira waited.")
    assert (divided.narration, divided.speech) == ("Kai said …\nMira waited.", ("I will come.",))


@pytest.mark.parametrize(
    ("text", "is_action"),
    [
        ("*smiles softly* You came.", True),
        ("*He closes the book.*\n“You came.”", True),
        ("  *nods* *sits down*", True),
        ("*The Silver Moth* left the harbour.", False),
        ("**The Silver Moth** left the harbour.", False),
        ("* Mira left.\n* Kai stayed.", False),
        ("*銀の蛾号*は五月に港を出た。", False),
        ("*微笑む*「はい」", True),
        ("5 * 4 * 3", False),
        ("", False),
    ],
)
def test_actions_are_distinguished_from_emphasis_and_lists(text: str, is_action: bool) -> None:
    assert begins_with_action(text) is is_action


@given(st.text(alphabet="ab \n\"'“”„«»‘’「」*.,"))
def test_dividing_a_text_loses_no_letters(text: str) -> None:
    divided = divide(text)
    letters = [char for char in text if char.isalpha()]
    parts = "".join((divided.narration, *divided.speech))
    assert sorted(letters) == sorted(char for char in parts if char.isalpha())


@pytest.mark.parametrize("piece", ['"', "'", " '", "“", "«", "„", "*", "*a", '"a ', "‘a "])
def test_a_text_full_of_marks_takes_no_time(piece: str) -> None:
    text = piece * 100_000
    divide(text)
    begins_with_action(text)
