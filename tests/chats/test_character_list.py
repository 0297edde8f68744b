from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from app.chats.character_list import MAX_ALIASES, merge_characters, rename_character
from app.chats.errors import CharacterNotFound, CharacterTaken

Stored = dict[str, Any]

KAI: Stored = {"id": str(UUID(int=1)), "name": "Kai", "aliases": ["Stranger", "K"], "hashed_name": "Stranger"}
MIRA: Stored = {"id": str(UUID(int=2)), "name": "Mira", "persona": "A cartographer."}


def count_ids() -> Callable[[], UUID]:
    """Return a function that makes ids: 10, 11, …"""
    ids = iter(range(10, 99))
    return lambda: UUID(int=next(ids))


def merge(*given: Stored) -> list[Stored]:
    return merge_characters([KAI, MIRA], given, count_ids())


@pytest.mark.parametrize("name", ["Kai", "Stranger", "K"])
def test_a_former_name_means_the_character(name: str) -> None:
    assert merge({"name": name, "persona": "A keeper."}) == [KAI | {"persona": "A keeper."}]
    assert merge({"name": name, "id": KAI["id"]}) == [KAI]


@pytest.mark.parametrize(
    "given", [[{"name": "K"}, {"name": "Kai"}], [{"name": "K"}, {"name": "Stranger"}], [MIRA, KAI, {"name": "K"}]]
)
def test_one_character_cannot_be_given_twice(given: list[Stored]) -> None:
    with pytest.raises(CharacterTaken):
        merge(*given)


@pytest.mark.parametrize(
    ("aliases", "left"), [(["K"], ["K"]), (["X", "Stranger"], ["Stranger"]), ([], None), (None, None)]
)
def test_former_names_that_are_left_out_are_free(aliases: list[str] | None, left: list[str] | None) -> None:
    (kai,) = merge({"name": "Kai", "aliases": aliases})
    assert kai.get("aliases") == left
    assert kai["hashed_name"] == "Stranger"


def test_a_new_character_can_have_a_free_former_name() -> None:
    kai, other = merge({"name": "Kai", "aliases": ["Stranger"]}, {"name": "K"})
    assert (kai["aliases"], other) == (["Stranger"], {"id": str(UUID(int=10)), "name": "K"})


def test_messages_of_two_characters_are_not_hashed_alike() -> None:
    _, other = merge({"name": "Kai", "aliases": []}, {"name": "Stranger"})
    assert other["hashed_name"] == other["id"] != KAI["id"]


def test_former_names_end_with_the_newest() -> None:
    renamed = [MIRA]
    for name in ("Maria", "Mia", "Mira", "M"):
        renamed = rename_character(renamed, renamed[0]["name"], name)
    assert renamed == [MIRA | {"name": "M", "aliases": ["Maria", "Mia", "Mira"], "hashed_name": "Mira"}]


def test_a_rename_to_the_same_name_changes_nothing() -> None:
    assert rename_character([KAI, MIRA], "Mira", "Mira") == [KAI, MIRA]


def test_a_former_name_can_be_taken_again() -> None:
    kai, mira = rename_character([KAI, MIRA], "K", "Stranger")
    assert (kai["name"], kai["aliases"], kai["hashed_name"], mira) == ("Stranger", ["K", "Kai"], "Stranger", MIRA)


@pytest.mark.parametrize("name", ["Kai", "Stranger"])
def test_a_name_of_another_character_is_refused(name: str) -> None:
    with pytest.raises(CharacterTaken):
        rename_character([KAI, MIRA], "Mira", name)


def test_an_unknown_character_cannot_be_renamed() -> None:
    with pytest.raises(CharacterNotFound):
        rename_character([KAI, MIRA], "Ines", "I")


def test_the_oldest_former_names_are_dropped() -> None:
    renamed = [MIRA]
    for n in range(MAX_ALIASES + 2):
        renamed = rename_character(renamed, renamed[0]["name"], f"Mira {n}")
    assert len(renamed[0]["aliases"]) == MAX_ALIASES
    assert renamed[0]["aliases"][0] == "Mira 1"
