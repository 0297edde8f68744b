"""The text that is made from memories, against a slow reference."""

from collections.abc import Sequence
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from app.blocks.bullets import MAX_BULLET_CHARS, MAX_WORDS, choose, word
from app.blocks.fold import MAX_CHARS, fold
from app.knowledge.important import MOST, Important, choose_important
from app.knowledge.known import Known

WORDS = st.sampled_from(["Mira", "a b", "one  two\nthree", "x" * 400, "word " * 60, "w " * 199, "y" * 1_499])


def important(number: int, content: str, importance: float = 0.8, at: int = 0, rank: int = 0) -> Important:
    return Important(rank, None, f"m{number}", UUID(int=number), content, importance, at)


@st.composite
def memories(draw: st.DrawFn) -> list[Important]:
    """Memories of all scopes, some of which have the same key, in any order."""
    found = []
    for number in range(draw(st.integers(0, 70))):
        rank = draw(st.integers(0, 3))
        name = draw(st.sampled_from(["Kai", "Ines"])) if rank == 1 else None
        key = f"m{draw(st.integers(0, 100))}"
        importance, at = draw(st.sampled_from([0.3, 0.7, 0.8, 1.0])), draw(st.integers(0, 3))
        found.append(Important(rank, name, key, UUID(int=number), draw(WORDS), importance, at))
    return found


def choose_slowly(found: Sequence[Important], character: str | None) -> list[str]:
    """The lines: the least important is taken away until they fit.

    If there are memories of several scopes, a text counts once, with the place of the most important one of its copies.
    """
    deciding: list[Important] = []
    for one in found:
        others = [other for other in found if other.key == one.key and other.character in (None, character)]
        decides = min(others, key=lambda it: (it.rank, -it.learnt_us, -it.statement_id.int), default=None)
        if decides is one:
            deciding.append(one)
    kept = [one for one in deciding if fits([one])]
    places = {one.key: strength(one) for one in kept}
    if len({one.rank for one in deciding}) > 1:
        copies = [[it for it in kept if it.content == one.content] for one in kept]
        places = {one.key: max(map(strength, same)) for one, same in zip(kept, copies, strict=True)}
        nearest = [max(same, key=lambda it: (-it.rank, strength(it))) for same in copies]
        kept = [one for one, best in zip(kept, nearest, strict=True) if one is best]
    kept.sort(key=lambda it: places[it.key])
    while len(kept) > MOST or not fits(kept):
        kept.pop(0)
    kept.sort(key=lambda it: (it.learnt_us, it.statement_id))
    return [f"- {' '.join(it.content.split())}" for it in kept]


def strength(one: Important) -> tuple[float, int, UUID]:
    return one.importance, one.learnt_us, one.statement_id


def fits(kept: Sequence[Important]) -> bool:
    lines = [f"- {' '.join(it.content.split())}" for it in kept]
    words = sum(len(it.content.split()) for it in kept)
    return words <= MAX_WORDS and len("\n".join(lines)) <= MAX_BULLET_CHARS


@given(memories(), st.sampled_from([None, "Kai"]))
@example([important(number, "w", 0.9, number) for number in range(60)], None)
@example([important(1, "w " * 200), important(2, "x " * 201)], None)
@example([important(0, "Mira"), important(1, "Mira"), important(2, "y" * 1_499, rank=1)], None)
def test_the_most_important_memories_that_fit_are_chosen(found: list[Important], character: str | None) -> None:
    held = choose_important(found, character)
    chosen = choose(held)
    text = word(chosen)
    assert text.splitlines() == choose_slowly(found, character)
    assert len(text.replace("- ", "").split()) <= 200
    assert len(text) <= 1_500


def test_a_text_that_never_fits_gives_way_to_others() -> None:
    found = choose([important(1, "x" * 1_499, 1.0), important(2, "Tomas rows.")])
    assert word(found) == "- Tomas rows."


def test_a_new_memory_is_appended() -> None:
    first, second = important(1, "Tomas rows.", 0.7, 1), important(2, "Mira sails.", 1.0, 2)
    assert word(choose([second, first])) == "- Tomas rows.\n- Mira sails."


def step(number: int, operation: str, content: str, pattern: str | None = None, *, label: str = "facts") -> Known:
    return Known(3, None, label, UUID(int=100 + number), content, 0, "person", False, number, operation, pattern)


def test_operations_edit_the_text_made_from_memories() -> None:
    found = [important(1, "Tomas rows.", at=9)]
    assert fold([], None, found)["facts"].text == "- Tomas rows."
    assert fold([step(1, "append", "No.")], None, found)["facts"].text == "- Tomas rows.\nNo."
    assert fold([step(1, "search_replace", "sails", "rows")], None, found)["facts"].text == "- Tomas sails."
    written = fold([step(1, "replace", "No.")], None, found)["facts"]
    assert (written.text, written.memories) == ("No.", [])
    assert list(fold([step(1, "append", "x", label="user")], None, found)) == ["user", "facts"]
    assert list(fold([step(1, "append", "x", label="user")], None)) == ["user"]


def test_written_text_takes_precedence_over_memories() -> None:
    found = [important(number, "x" * 290, 0.7 + number / 100, number) for number in range(5)]
    block = fold([step(1, "append", "y" * 1_000)], None, found)["facts"]
    assert block.text.endswith("\n" + "y" * 1_000)
    assert block.memories == ["m2", "m3", "m4"]
    assert len(block.text) <= MAX_CHARS
    gone = fold([step(1, "append", "y" * MAX_CHARS)], None, found)["facts"]
    assert (gone.text, gone.memories) == ("y" * MAX_CHARS, [])


def by(origin: str, number: int, operation: str, content: str, *, rank: int = 0) -> Known:
    return step(number, operation, content)._replace(origin=origin, rank=rank)


def test_after_a_tool_wrote_the_whole_later_ones_follow() -> None:
    written = by("tool", 1, "replace", "Tomas rows.")
    old, new = important(1, "He is old.", 1.0, 9), important(101 + 1, "Mira sails.", 0.7, 3)
    block = fold([written, by("tool", 2, "append", "It rains.")], None, [old, new])["facts"]
    assert (block.text, block.memories) == ("Tomas rows.\n- Mira sails.\nIt rains.", ["m102"])
    assert (block.deciding.content, block.newest.content, block.count_of(0)) == ("It rains.", "It rains.", 2)
    alone = fold([written], None, [new._replace(rank=2)])["facts"]
    assert (alone.text, alone.deciding, alone.newest) == ("Tomas rows.\n- Mira sails.", written, written)
    assert fold([written], None, [old])["facts"].text == "Tomas rows."


def test_what_a_tool_condensed_stays_away() -> None:
    written = by("tool", 10, "replace", "Tomas rows.")
    seen, refreshed = important(1, "He is old.", 0.3, 1), important(2, "He rows.", 0.7, 2)
    unseen, newer = important(120, "It rains.", 0.3, 3), important(121, "Mira sails.", 0.7, 4)
    for memories in ([newer, refreshed, seen, unseen], [newer, seen, unseen]):
        block = fold([written], None, memories)["facts"]
        assert (block.text, block.memories) == ("Tomas rows.\n- It rains.\n- Mira sails.", ["m120", "m121"])


def test_a_whole_text_of_a_person_has_none() -> None:
    new = important(199, "Mira sails.")
    person, tool = by("person", 1, "replace", "Mine."), by("tool", 2, "append", "It rains.")
    assert fold([person, tool], None, [new])["facts"].text == "Mine.\nIt rains."
    wide = by("tool", 3, "replace", "Wide.", rank=2)
    assert fold([wide, person], None, [new])["facts"].text == "Mine."
    assert (
        fold([by("person", 3, "replace", "Wide.", rank=2), by("tool", 2, "replace", "Near.")], None, [new])[
            "facts"
        ].text
        == "Near.\n- Mira sails."
    )


def test_later_memories_give_way_to_a_tools_text() -> None:
    written = by("tool", 1, "replace", "x" * 1_990)
    block = fold([written], None, [important(102, "Mira sails."), important(103, "Rain.", 0.7)])["facts"]
    assert (block.text, block.memories) == ("x" * 1_990, [])
