"""Dialogue that an answer invents."""

import pytest

from app.summarising.judging.dialogue import has_turns, invents_dialogue, is_script
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


SCRIPT = "Kai: I was counting the gulls. There were nineteen.\nMira: And did you note it down?\nKai: Under weather."


@pytest.mark.parametrize("names", [("Mira Holm", "Kai"), ()])
@pytest.mark.parametrize(
    "text",
    [
        SCRIPT,
        "Mira: Easy now.\nKai: I am being easy.\nMira: Good.",
        "Mira: Did you wind the clock?\nKai: I did, forty turns.",
        "**Mira:** Wach auf.\n**Kai:** Gleich.\n**Mira:** Jetzt.",
        "User: what happened?\nAssistant: Mira mended the clock for you.\nUser: good.",
    ],
)
def test_turns_of_the_author_and_others_are_found(text: str, names: tuple[str, ...]) -> None:
    assert has_turns(text, "Kai", names)


def test_turns_in_one_paragraph_are_found() -> None:
    one_line = " ".join(SCRIPT.split())
    assert has_turns(one_line, "Kai", {"Mira Holm"})
    assert not has_turns(one_line, "Kai", ())
    assert has_turns("海斗：起きて。 美羽：まだ。 海斗：もう朝だ。", "海斗", {"美羽"})
    long_name = "The Keeper of the Light: Easy. Kai: I am. The Keeper of the Light: Good."
    assert has_turns(long_name, "Kai", {"The Keeper of the Light"})


def test_a_diary_without_an_author_can_have_turns() -> None:
    text = "Mira: Easy now.\nOren: I am.\nMira: Good."
    assert has_turns(text, "", {"Mira"})
    assert not has_turns(text, "", {"Kai"})


@pytest.mark.parametrize(
    "text",
    [
        "Kai: I wound the clock today, and I thought of Mira.",
        "Kai: I thought about it for long. Conclusion: I love her!",
        "Mira: I love her.\nOren: I never forgave him.\nMira again: I would forgive her all.",
        "Kai: tired.\nMira: asleep, and well.",
        "Kai: the lamp, I promised.\nMira: I owe her cherries! Will she come?",
        "Today Mira and I spoke of winter, of the clock, and of all that I never said.\nMira: Miss him?\nKai: I do.",
        "I asked Mira. Mira: silent. I went up to the lamp.",
    ],
)
def test_a_diary_with_names_and_colons_is_no_script(text: str) -> None:
    assert not is_script(text, first_person=True)
    assert not has_turns(text, "Kai", {"Mira Holm", "Kai"})


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
