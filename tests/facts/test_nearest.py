"""Which statement holds, against a reference that tries the scopes one after the other."""

from collections.abc import Sequence
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from app.knowledge.known import SCOPES, Known, choose_nearest

CHARACTERS = (None, "Kai", "Ines")


@st.composite
def statements(draw: st.DrawFn) -> list[Known]:
    """Statements with distinct ids, many of them of the same time."""
    found = []
    for number in range(draw(st.integers(0, 12))):
        rank = draw(st.integers(0, len(SCOPES) - 1))
        name = draw(st.sampled_from(CHARACTERS[1:])) if SCOPES[rank] == "character" else None
        content = draw(st.sampled_from([None, "green", "red"]))
        at = draw(st.integers(0, 2))
        key = draw(st.sampled_from(["lamp", "boat"]))
        found.append(Known(rank, name, key, UUID(int=number), content, 3, "tool", False, at))
    return draw(st.permutations(found))


def choose_slowly(known: Sequence[Known], character: str | None) -> dict[str, Known]:
    """For each key, the last statement of the first scope that has any."""
    held = {}
    for key in {one.key for one in known}:
        for rank in range(len(SCOPES)):
            here = [one for one in known if one.key == key and one.rank == rank and one.character in (None, character)]
            here.sort(key=lambda one: (one.learnt_us, one.statement_id))
            if here:
                if here[-1].content is not None:
                    held[key] = here[-1]
                break
    return held


@given(statements(), st.sampled_from(CHARACTERS))
def test_the_nearest_and_newest_statement_wins(known: list[Known], character: str | None) -> None:
    assert choose_nearest(known, character) == choose_slowly(known, character)
