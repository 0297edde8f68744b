from collections.abc import Collection
from itertools import combinations

import pytest

from app.context.in_use import in_use
from app.context.texts import word_instruction as word


def word_instruction(own: str | None, present: Collection[str]) -> str:
    return word(own, present, in_use().tables.instructions)


HEADINGS = {
    "recap": "Running Recap",
    "summary": "Recent Conversation Summary",
    "diary": "Diary",
    "memos": "Memo Book",
    "pinned": "Pinned Messages",
}
EXPLAINED = {name: f'"{heading}" {"are" if name == "pinned" else "is"} ' for name, heading in HEADINGS.items()}
"""How the sentence about each part begins."""

SETS = [some for size in range(len(HEADINGS) + 1) for some in combinations(HEADINGS, size)]


@pytest.mark.parametrize("present", SETS, ids="+".join)
def test_the_instruction_explains_exactly_the_present_parts(present: tuple[str, ...]) -> None:
    instruction = word_instruction(None, present)
    assert tuple(name for name, beginning in EXPLAINED.items() if beginning in instruction) == present
    memory = [name for name in present if name != "pinned"]
    assert instruction.count("do not recite it") == bool(memory), "said once, of memory alone"


def test_each_set_of_parts_has_one_instruction_in_any_order() -> None:
    assert all(word_instruction(None, present) == word_instruction(None, set(present)) for present in SETS)
    assert len({word_instruction(None, present) for present in SETS}) == len(SETS)


def test_the_instruction_describes_the_diary_as_the_characters() -> None:
    assert "you yourself have written" in word_instruction(None, {"diary"})


@pytest.mark.parametrize("present", SETS[1:], ids="+".join)
def test_a_custom_instruction_replaces_the_built_in_one(present: tuple[str, ...]) -> None:
    assert word_instruction("Remember.", present) == "Remember."
    assert word_instruction("", present) == ""


def test_without_memory_there_is_no_instruction() -> None:
    assert word_instruction(None, set()) == ""
    assert word_instruction("Remember.", set()) == ""
