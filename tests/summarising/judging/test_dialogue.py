"""Dialogue that an answer invents."""

import pytest

from app.summarising.judging.dialogue import invents_dialogue, is_script
from app.summarising.judging.speech import divide, fold


@pytest.mark.parametrize(
    "text",
    [
        "Mira: *looks up slowly* You came back.\nKai: Of course.",
        "**Mira:** Did you sleep?\n**Kai:** Not at all!",
        '_Kai_: "It burns."\n\n_Mira_: "So it does."',
        "美羽：「おかえり。」\n海斗：「ただいま。」",
        "Mira: *She smiles.* Come in.",
    ],
)
def test_lines_of_speech_are_a_script(text: str) -> None:
    assert is_script(text, first_person=False)


@pytest.mark.parametrize(
    "text",
    [
        "Mira: a clockmaker, curt and kind.\nKai: the keeper of the lighthouse.",
        "- Mira: *exhausted*\n- Kai: *asleep*",
        'Kai said to Mira: "It burns."\nMira answered Kai: "So it does."',
        "Mira mended the box.\nKai was moved.\nIn short: *relief*",
        "Mira: tired, but is she well?",
    ],
)
def test_a_report_with_names_is_no_script(text: str) -> None:
    assert not is_script(text, first_person=False)


def test_the_days_of_a_diary_are_no_script() -> None:
    text = "Monday: he came back to me!\nTuesday: I told him that I love him!"
    assert not is_script(text, first_person=True)
    assert is_script('Monday: "Come in."\nTuesday: "I will."', first_person=True)


SAID = fold("I was the one who let the lamp go out. My brother was on the water that night.")
TOLD = 'Kai was silent for an hour before Kai spoke of Jonas at all. {} Mira listened to the end and stayed. {} "Yes."'


@pytest.mark.parametrize(
    ("first", "second", "invents"),
    [
        ('"Who goes there, stranger?"', '"Bolt every shutter, quickly!"', True),
        ('"Who goes there, stranger?"', '"I let the lamp go out."', False),
        ('"It was I who let the lamp go out that night."', '"My own brother was on the water."', False),
        ('"The Moth"', '"The Heron"', False),
    ],
)
def test_two_quotations_of_new_words_are_invented(first: str, second: str, invents: bool) -> None:
    text = TOLD.format(first, second)
    assert invents_dialogue(text, divide(text).speech, SAID, may_translate=False) is invents
    assert not invents_dialogue(text, divide(text).speech, SAID, may_translate=True)
