"""The text of a block, against a reference that goes through the operations one scope after the other."""

import sys
from bisect import bisect_left
from collections.abc import Sequence
from types import FrameType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.blocks.fold import MAX_CHARS, OPERATIONS, change, fold
from app.knowledge.important import Important
from app.knowledge.known import SCOPES, Known

CHARACTERS = (None, "Kai", "Ines")
PIECES = st.text(alphabet="ab ", max_size=3) | st.sampled_from(["a" * 900, "b" * MAX_CHARS, "ab" * 600])


@st.composite
def operations(draw: st.DrawFn) -> list[Known]:
    """Operations on one block in all scopes, many of them of the same time."""
    found = []
    for number in range(draw(st.integers(0, 9))):
        rank = draw(st.integers(0, len(SCOPES) - 1))
        name = draw(st.sampled_from(CHARACTERS[1:])) if SCOPES[rank] == "character" else None
        operation = draw(st.sampled_from(OPERATIONS))
        pattern = draw(st.sampled_from(["a", "b", "ab", "\n"])) if operation == "search_replace" else None
        origin = draw(st.sampled_from(["tool", "person"]))
        at = draw(st.integers(0, 2))
        content = None if operation == "replace" and draw(st.integers(0, 3)) == 0 else draw(PIECES)
        found.append(Known(rank, name, "user", UUID(int=number), content, 0, origin, False, at, operation, pattern))
    return draw(st.permutations(found))


def list_left(steps: Sequence[Known], rank: int, character: str | None) -> list[Known]:
    """The operations of a scope after its last deletion."""
    here = [one for one in steps if one.rank == rank and one.character in (None, character)]
    here.sort(key=lambda one: (one.learnt_us, one.statement_id))
    return here[max((at for at, one in enumerate(here, 1) if one.content is None), default=0) :]


def apply_slowly(text: list[str], one: Known) -> tuple[list[str], bool]:
    """The text after an operation, as a list of characters, and whether it would be too long."""
    words = list(one.content or "")
    if one.operation == "replace":
        after = words
    elif one.operation == "append":
        after = [*text, "\n", *words] if text else words
    else:
        after = replace_slowly(text, list(one.pattern or ""), words)
    return (text, True) if len(after) > MAX_CHARS else (after, False)


def order_slowly(lines: Sequence[str], patterns: Sequence[str]) -> list[int]:
    """The positions of lines in the order in which they give way: those with the last place of a pattern at the end."""
    text = "\n".join(lines)
    line_of = [at for at, line in enumerate(lines) for _ in f"{line}\n"]
    needed = set()
    for pattern in patterns:
        starts = [at for at in range(len(text)) if text[at : at + len(pattern)] == pattern]
        needed |= {line_of[at] for last in starts[-1:] for at in range(last, last + len(pattern) + 1)}
    return [at for at in range(len(lines)) if at not in needed] + sorted(needed)


def drop_slowly(text: list[str], steps: Sequence[Known], nearer: Sequence[Known]) -> list[str]:
    """The wider text without as few lines as possible, so that as many operations fit as without it."""
    lines = "".join(text).split("\n")
    dropped_first = order_slowly(lines, [one.pattern for one in (*steps, *nearer) if one.pattern])
    found = []
    for dropped in range(len(lines) + 1):
        gone = dropped_first[:dropped]
        left = after = list("\n".join([line for at, line in enumerate(lines) if at not in gone]))
        faults = 0
        for one in steps:
            after, is_too_long = apply_slowly(after, one)
            faults += is_too_long
        found.append((faults, left))
    fits = [faults <= found[-1][0] for faults, _ in found]
    return text if fits[0] else found[bisect_left(fits, True)][1]


def fold_slowly(steps: Sequence[Known], character: str | None) -> str | None:
    """Every operation from the widest scope to the nearest, each on a list of characters; None if there is none."""
    text: list[str] = []
    seen = False
    for rank in reversed(range(len(SCOPES))):
        here = list_left(steps, rank, character)
        seen = seen or bool(here)
        text = drop_slowly(text, here, [one for near in range(rank) for one in list_left(steps, near, character)])
        for one in here:
            text, _ = apply_slowly(text, one)
    return "".join(text) if seen else None


def replace_slowly(text: list[str], pattern: list[str], words: list[str]) -> list[str]:
    """All occurrences that do not overlap, from the left."""
    after, at = [], 0
    while at < len(text):
        if text[at : at + len(pattern)] == pattern:
            after += words
            at += len(pattern)
        else:
            after.append(text[at])
            at += 1
    return after


@given(operations(), st.sampled_from(CHARACTERS))
def test_the_text_equals_that_of_the_slow_reference(steps: list[Known], character: str | None) -> None:
    block = fold(steps, character).get("user")
    assert (block.text if block else None) == fold_slowly(steps, character)


@given(operations(), st.sampled_from(CHARACTERS))
def test_the_nearest_scope_with_an_operation_decides(steps: list[Known], character: str | None) -> None:
    block = fold(steps, character).get("user")
    ranks = [rank for rank in range(len(SCOPES)) if list_left(steps, rank, character)]
    assert (block.deciding.rank if block else None) == (min(ranks) if ranks else None)


def test_the_wider_text_gives_way_from_its_oldest_lines() -> None:
    wide = Known(2, None, "user", UUID(int=1), "a" * 600 + "\n" + "b" * 600 + "\n\nc", 0, "person", False, 9, "replace")
    near = Known(0, None, "user", UUID(int=2), "d" * 1_200, 0, "tool", False, 1, "append")
    block = fold([wide, near], None)["user"]
    assert block.text == "b" * 600 + "\n\nc\n" + "d" * 1_200
    assert block.left_out == "a" * 600
    assert [one.is_applied for one in block.log] == [True, True]
    assert fold([wide, near._replace(content="d" * 2_000)], None)["user"].left_out == wide.content
    assert fold([wide, near._replace(content="d")], None)["user"].left_out == ""
    hidden = fold([wide, near, near._replace(statement_id=UUID(int=3), operation="replace", content="e")], None)
    assert (hidden["user"].text, hidden["user"].left_out) == ("e", "")


def test_a_line_that_a_nearer_replacement_needs_stays() -> None:
    text = "Name: Mira\n" + "\n".join(["b" * 379] * 5)
    wide = Known(2, None, "user", UUID(int=1), text, 0, "person", False, 9, "replace")
    rename = Known(0, None, "user", UUID(int=2), "Mira V", 0, "tool", False, 1, "search_replace", "Mira")
    near = Known(0, None, "user", UUID(int=3), "d" * 300, 0, "tool", False, 2, "append")
    block = fold([wide, rename, near], None)["user"]
    assert block.text == "\n".join(["Name: Mira V", *["b" * 379] * 4, "d" * 300])
    assert block.left_out == "b" * 379
    assert fold([wide, rename, near._replace(rank=1)], None)["user"].text == "\n".join(
        ["Name: Mira V", *["b" * 379] * 4, "d" * 300]
    )
    alone = fold([wide, rename, near._replace(content="d" * 2_000)], None)["user"]
    assert (alone.text, alone.left_out) == ("d" * 2_000, text)


def test_the_lines_of_a_longer_pattern_stay_together() -> None:
    text = "\n".join(["a" * 900, "one", "two", "c" * 900])
    wide = Known(2, None, "user", UUID(int=1), text, 0, "person", False, 9, "replace")
    join = Known(0, None, "user", UUID(int=2), "three", 0, "tool", False, 1, "search_replace", "one\ntwo")
    near = Known(0, None, "user", UUID(int=3), "d" * 1_500, 0, "tool", False, 2, "append")
    block = fold([wide, join, near], None)["user"]
    assert (block.text, block.left_out) == ("three\n" + "d" * 1_500, "\n".join(["a" * 900, "c" * 900]))


def count_changes(steps: Sequence[Known], memories: Sequence[Important]) -> int:
    """How many times an operation is applied to a text while the blocks are folded."""
    calls = 0

    def watch(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code is change.__code__

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        fold(steps, None, memories)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("text", ["\n".join("a" * 900), "\n" * 1_990])
def test_many_lines_take_few_changes(text: str) -> None:
    wide = Known(3, None, "facts", UUID(int=1), text, 0, "tool", False, 0, "append")
    near = [Known(0, None, "facts", UUID(int=n), "d" * 30, 0, "tool", False, n, "append") for n in range(2, 52)]
    memories = [Important(3, None, f"m{n}", UUID(int=n), "Tomas rows.", 0.8, n) for n in range(100, 150)]
    assert 50 < count_changes([wide, *near], memories) <= 7_000


def test_an_own_text_that_is_too_long_leaves_the_wider_one() -> None:
    wide = Known(2, None, "user", UUID(int=1), "Mira.", 0, "person", False, 9, "replace")
    near = [Known(0, None, "user", UUID(int=n), "d" * 1_200, 0, "tool", False, n, "append") for n in (2, 3)]
    block = fold([wide, *near], None)["user"]
    assert (block.text, block.left_out) == ("Mira.\n" + "d" * 1_200, "")
    assert [one.fault for one in block.log] == [None, None, "too_long"]


def test_a_replacement_of_the_limit_is_taken() -> None:
    assert change("", "replace", "x" * MAX_CHARS, None).fault is None
    assert change("x" * MAX_CHARS, "append", "", None).fault == "too_long"
    assert change("x", "search_replace", "y", "z").fault == "missing"
