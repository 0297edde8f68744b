"""Whose prompt a context is."""

from typing import Any

import pytest

from app.context.shown import choose_character

KAI, REN = {"name": "Kai"}, {"name": "Ren"}
ABSENT = {"name": "Sakura", "disabled": True}


@pytest.mark.parametrize(
    ("characters", "asked", "chosen"),
    [
        ([], None, None),
        ([KAI], None, "Kai"),
        ([KAI, ABSENT], None, "Kai"),
        ([ABSENT], None, None),
        ([KAI, REN], None, None),
        ([KAI, REN], "Ren", "Ren"),
        ([KAI, ABSENT], "Sakura", "Sakura"),
        ([], "Mira", "Mira"),
    ],
)
def test_a_prompt_is_whose_it_is_said_to_be_or_that_of_the_only_one_there(
    characters: list[dict[str, Any]], asked: str | None, chosen: str | None
) -> None:
    assert choose_character(characters, asked) == chosen
