"""What a context takes from the chat's row: segments of what was told, whose they are, edges and gaps."""

from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.told import Told
from app.context.segments import Segment
from app.context.shown import choose_character, find_edges, join_gaps, place_told

RECAP = Told("recap", "They met.", 3, ("recap:4",), depth=2, role="user", scan=False)


def test_what_is_told_for_its_place_in_the_order_is_the_systems() -> None:
    assert place_told(RECAP) == Segment("recap", "They met.", 3, "system", ("recap:4",), scan=False)


def test_what_is_told_for_before_the_prompt_is_the_systems_too() -> None:
    told = Told("recap", "They met.", 3, place="before_prompt", depth=2, role="assistant")
    assert place_told(told) == Segment("recap", "They met.", 3, "system", after="before_prompt")


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_what_is_told_for_among_the_messages_keeps_its_depth_and_its_role(
    role: Literal["system", "user", "assistant"],
) -> None:
    told = Told("recap", "They met.", 3, place="in_chat", depth=7, role=role, scan=True)
    assert place_told(told) == Segment("recap", "They met.", 3, role, after="in_chat", depth=7, scan=True)


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


def test_edges_are_those_of_the_layer_that_makes_their_kind() -> None:
    shown = {"summary": {"edges": [41, 47]}, "scenes": {"edges": [61, 75]}, "diary": {"edges": [3]}}
    assert find_edges("folds", shown) == [41, 47]
    assert find_edges("scenes", shown) == [61, 75]


@pytest.mark.parametrize("shown", [{}, {"summary": {}}, {"scenes": {"edges": [61]}}])
def test_a_layer_that_has_left_no_edges_has_none(shown: dict[str, Any]) -> None:
    assert list(find_edges("folds", shown)) == []


_RANGES = st.tuples(st.integers(1, 30), st.integers(0, 5)).map(lambda drawn: [drawn[0], drawn[0] + drawn[1]])
_LAYERS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(dict) | st.builds(dict, gaps=st.lists(_RANGES, max_size=4)), max_size=4
)


@given(_LAYERS)
def test_gaps_are_in_order_and_tell_of_every_seq_that_any_layer_misses_once(of_layers: list[dict[str, Any]]) -> None:
    gaps = join_gaps(of_layers)
    missing = {seq for one in of_layers for first, last in one.get("gaps", ()) for seq in range(first, last + 1)}
    assert [seq for first, last in gaps for seq in range(first, last + 1)] == sorted(missing)
    assert all(earlier[1] + 1 < later[0] for earlier, later in pairwise(gaps)), "none touch"
