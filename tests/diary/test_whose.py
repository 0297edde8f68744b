"""Whose diary a request means."""

import pytest

from app.diary.whose import choose_character, find_persona, is_active
from app.kit.errors import Invalid

KAI = {"name": "Kai", "persona": "A lighthouse keeper."}
MIRA = {"name": "Mira", "disabled": False}
OFF = {"name": "Ines", "disabled": True}


@pytest.mark.parametrize(
    ("cast", "given", "meant"),
    [
        ([], None, ""),
        ([], "Kai", "Kai"),
        ([KAI], None, "Kai"),
        ([KAI], "Kai", "Kai"),
        ([KAI, OFF], None, "Kai"),
        ([KAI, OFF], "Ines", "Ines"),
        ([KAI, MIRA], "Mira", "Mira"),
    ],
)
def test_the_only_one_need_not_be_named(cast: list[dict[str, object]], given: str | None, meant: str) -> None:
    assert choose_character(cast, given, part="body") == meant


@pytest.mark.parametrize(("cast", "given"), [([KAI, MIRA], None), ([KAI, MIRA], "Ines"), ([OFF], None), ([KAI], "")])
def test_an_unclear_one_is_refused_with_the_names_there_are(cast: list[dict[str, object]], given: str | None) -> None:
    with pytest.raises(Invalid) as refused:
        choose_character(cast, given, part="query")
    assert refused.value.errors[0]["loc"] == ["query", "character"]
    assert all(str(one["name"]) in refused.value.detail for one in cast)


def test_a_character_is_there_if_it_is_named_and_not_disabled() -> None:
    assert [is_active([KAI, OFF], name) for name in ("Kai", "Ines", "Mira", "")] == [True, False, False, False]
    assert [is_active([], name) for name in ("", "Kai")] == [True, False]


def test_a_persona_that_is_not_told_is_empty() -> None:
    assert [find_persona([KAI, MIRA], name) for name in ("Kai", "Mira", "")] == ["A lighthouse keeper.", "", ""]
