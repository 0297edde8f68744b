"""For whom the service writes."""

import pytest

from app.diary.writers import choose_writers

KAI, MIRA, OFF = {"name": "Kai"}, {"name": "Mira", "disabled": False}, {"name": "Ines", "disabled": True}


@pytest.mark.parametrize(
    ("characters", "speakers", "writers"),
    [
        ([KAI, MIRA], ["Mira", "Kai"], ["Kai", "Mira"]),
        ([KAI, MIRA], ["Mira", "a stranger"], ["Mira"]),
        ([KAI, MIRA], [None], []),
        ([KAI], [None], ["Kai"]),
        ([KAI], ["a stranger"], []),
        ([KAI, OFF], ["Kai", "Ines"], ["Kai"]),
        ([KAI, OFF], [None], ["Kai"]),
        ([KAI, MIRA, OFF], [None], []),
        ([OFF], [None], []),
        ([], [None, "somebody"], [""]),
        ([], [], []),
    ],
)
def test_enabled_characters_that_spoke_write_an_entry(
    characters: list[dict[str, object]], speakers: list[str | None], writers: list[str]
) -> None:
    assert choose_writers(characters, speakers) == writers
