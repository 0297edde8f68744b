import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.consolidation.safe_facts import find_facts
from app.summarising.transcript import Utterance


def facts(text: str, role: str = "user") -> list[tuple[str, str]]:
    return list(find_facts(Utterance(1, role, "Someone", text)))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is Mira.", "Mira"),
        ("Hi, my name's Mira and I bake bread.", "Mira"),
        ("Hello! My name is Mira Okafor.", "Mira Okafor"),
        ("You can call me Kit, by the way.", "Kit"),
        ("Please call me O'Brien!", "O'Brien"),
        ("*bows* My name is Mira.", "Mira"),
        ('*bows* "My name is Mira."', "Mira"),
        ("“My name is Mira.” *She smiles.*", "Mira"),
        ("My name is Jean-Luc 😀", None),
        ("Ich heiße Jürgen und wohne in Köln.", "Jürgen"),
        ("Hallo, mein Name ist Änne.", "Änne"),
        ("Me llamo Íñigo y vivo aquí.", "Íñigo"),
        ("Je m'appelle Zoé.", "Zoé"),
        ("私の名前はミラです。", "ミラ"),
        ("你好。我叫小明。", "小明"),
        ("My name is on the list.", None),
        ("My name is not Mira.", None),
        ("My name is Mira?", None),
        ("Is my name Mira?", None),
        ("If you call me Kit, I answer.", None),
        ("Never call me Kit.", None),
        ("Call me tomorrow.", None),
        ("Call me Monday.", None),
        ("Call me Later!", None),
        ("She said her name is Mira.", None),
        ('"My name is Anna," she lied.', None),
        ('"My name is Anna." She lied.', None),
        ('"My name is Anna. I sell bread," she lied.', None),
        ('He looked up. "My name is Anna."', None),
        ("我叫他快点来我们这里一起吃晚饭。", None),
    ],
)
def test_a_name_is_read_only_if_it_is_certain(text: str, name: str | None) -> None:
    assert facts(text) == ([("name", name)] if name else [])


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("My favourite colour is green.", ("favourite_colour", "green")),
        ("My all-time favorite ice cream is definitely pistachio!", ("favorite_ice_cream", "pistachio")),
        ("My birthday is on 3 May.", ("birthday", "3 May")),
        ("I'm allergic to peanuts.", ("allergic_to", "peanuts")),
        ("My favourite part is when the dog jumps.", None),
        ("My birthday is soon.", None),
        ("I'm allergic to that.", None),
        ("My favourite colour is green, but only on Sundays.", None),
    ],
)
def test_few_other_facts_are_read(text: str, fact: tuple[str, str] | None) -> None:
    assert facts(text) == ([fact] if fact else [])


@pytest.mark.parametrize("role", ["assistant", "narrator", "system"])
def test_only_the_user_states_facts(role: str) -> None:
    assert facts("My name is Mira.", role) == []


def test_a_corrected_name_comes_after_the_former_one() -> None:
    assert facts("My name is Alexander. Call me Alex.") == [("name", "Alexander"), ("name", "Alex")]


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for start in ("", "My name is ", "我叫", "My favourite "):
        for key, value in facts(f"{start}{text}"):
            assert key
            assert value
