from typing import Any

import pytest

from app.diary.book import choose_diary
from app.kit.errors import Invalid

KAI, MIRA, OFF = {"name": "Kai"}, {"name": "Mira", "disabled": False}, {"name": "Ines", "disabled": True}


@pytest.mark.parametrize(
    ("characters", "named", "chosen"),
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
def test_the_sole_character_need_not_be_named(characters: list[dict[str, Any]], named: str | None, chosen: str) -> None:
    assert choose_diary(characters, named, part="body") == chosen


@pytest.mark.parametrize(
    ("characters", "named"), [([KAI, MIRA], None), ([KAI, MIRA], "Ines"), ([OFF], None), ([KAI], "")]
)
def test_an_unclear_choice_is_refused_with_the_names(characters: list[dict[str, Any]], named: str | None) -> None:
    with pytest.raises(Invalid) as refused:
        choose_diary(characters, named, part="query")
    assert refused.value.errors[0]["loc"] == ["query", "character"]
    assert all(one["name"] in refused.value.detail for one in characters)
