from typing import Any

import pytest

from app.chats.characters import (
    accepts,
    find_meant,
    find_persona,
    find_sole,
    is_active,
    list_active,
    list_disabled,
    list_names,
)

KAI = {"name": "Kai", "persona": "A lighthouse keeper."}
MIRA = {"name": "Mira", "disabled": False}
OFF = {"name": "Ines", "disabled": True}


@pytest.mark.parametrize(
    ("characters", "sole"),
    [
        ([], None),
        ([KAI], "Kai"),
        ([MIRA], "Mira"),
        ([KAI, OFF], "Kai"),
        ([OFF, KAI], "Kai"),
        ([KAI, MIRA], None),
        ([KAI, MIRA, OFF], None),
        ([OFF], None),
    ],
)
def test_the_sole_character_is_the_only_active_one(characters: list[dict[str, Any]], sole: str | None) -> None:
    assert find_sole(characters) == sole
    assert find_meant(characters, None) == sole


@pytest.mark.parametrize("characters", [[], [KAI], [KAI, OFF], [KAI, MIRA]])
@pytest.mark.parametrize("named", ["Kai", "Ines", ""])
def test_a_request_means_the_character_that_it_names(characters: list[dict[str, Any]], named: str) -> None:
    assert find_meant(characters, named) == named


def test_names_are_in_the_order_of_the_chat() -> None:
    characters: list[dict[str, Any]] = [OFF, MIRA, KAI]
    assert list_names(characters) == ["Ines", "Mira", "Kai"]
    assert list_names(list_active(characters)) == ["Mira", "Kai"]
    assert list_disabled(characters) == ["Ines"]


def test_a_disabled_character_is_not_active() -> None:
    assert [is_active([KAI, OFF], name) for name in ("Kai", "Ines", "Mira", "")] == [True, False, False, False]


def test_without_characters_only_the_unnamed_one_is_active() -> None:
    assert [is_active([], name) for name in ("", "Kai")] == [True, False]


def test_a_chat_accepts_its_characters_names_or_if_none_any() -> None:
    assert [accepts([KAI, OFF], name) for name in ("Kai", "Ines", "Mira", "")] == [True, True, False, False]
    assert [accepts([], name) for name in ("Kai", "")] == [True, True]


def test_a_missing_persona_is_empty() -> None:
    assert [find_persona([KAI, MIRA], name) for name in ("Kai", "Mira", "")] == ["A lighthouse keeper.", "", ""]
