from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reimport.pairing import Said, pair_gap


def _say(texts: str) -> list[Said]:
    """Messages like `u:hello` or `Kai:hello_there`: those of `u` are the user's, all others the character's."""
    parts = [text.partition(":") for text in texts.split()]
    return [Said("user" if name == "u" else "assistant", name, text.replace("_", " ")) for name, _, text in parts]


@pytest.mark.parametrize(
    ("old", "new", "pairs"),
    [
        ("u:a", "u:b", [0]),
        ("u:a", "Kai:a", [None]),
        ("u:a Kai:b u:c", "u:x Kai:y u:z", [0, 1, 2]),
        ("u:a Kai:b", "Kai:y", [1]),
        ("u:a u:b", "u:x", [0]),
        ("u:lamp_post u:red_door", "u:red_doors_and_a_door", [1]),
        ("Kai:a Sakura:b", "Sakura:c", [1]),
        ("Kai:red_door Sakura:b", "Sakura:red_door", [1]),
        ("Kai:a", "Sakura:a", [0]),
        ("u:a", "Kai:x u:b", [None, 0]),
        ("", "u:b", [None]),
        ("u:b", "", []),
    ],
)
def test_messages_in_a_gap_pair_by_role_speaker_and_words(old: str, new: str, pairs: list[int | None]) -> None:
    assert pair_gap(_say(old), _say(new), at_end=False) == pairs


def test_at_the_end_no_message_after_an_unpaired_one_is_paired() -> None:
    assert pair_gap(_say("u:a Kai:b"), _say("Kai:x u:y Kai:z"), at_end=True) == [1, None, None]
    assert pair_gap(_say("Kai:b"), _say("u:y Kai:z"), at_end=True) == [None, None]


@pytest.mark.parametrize("at_end", [False, True])
def test_a_long_gap_is_paired_by_role_in_order(at_end: bool) -> None:
    old, new = _say("u:a Kai:b " * 50), _say("u:c Kai:d " * 40)
    assert pair_gap(old, new, at_end=at_end) == list(range(80))
    assert pair_gap(old, [*new[:1], *new[2:]], at_end=at_end) == [0, *range(2, 80)]
    assert pair_gap(new, old, at_end=at_end) == [*range(80), *[None] * 20]


_saids = st.builds(
    Said, st.sampled_from(["user", "assistant"]), st.sampled_from([None, "Kai"]), st.sampled_from(["a b", "b c", "d"])
)


def _all_pairings(old_count: int, new_count: int) -> Iterator[list[int | None]]:
    """Every way to pair some of the new messages with old ones, in order."""
    for count in range(min(old_count, new_count) + 1):
        for chosen in combinations(range(new_count), count):
            for partners in combinations(range(old_count), count):
                partner = dict(zip(chosen, partners, strict=True))
                yield [partner.get(index) for index in range(new_count)]


def _rate(old: Sequence[Said], new: Sequence[Said], pairs: Sequence[int | None]) -> tuple[int, int, int]:
    """How many messages are paired, how many of them keep their speaker, and how alike the texts are."""
    paired = [(old[index], text) for index, text in zip(pairs, new, strict=True) if index is not None]
    likeness = [
        2_000 * len({*a.content.split()} & {*b.content.split()}) // len(f"{a.content} {b.content}".split())
        for a, b in paired
    ]
    return len(paired), sum(a.name == b.name for a, b in paired), sum(likeness)


@given(st.lists(_saids, max_size=5), st.lists(_saids, max_size=5), st.booleans())
def test_no_other_pairing_is_better(old: list[Said], new: list[Said], at_end: bool) -> None:
    possible = [
        pairs
        for pairs in _all_pairings(len(old), len(new))
        if all(index is None or old[index].role == text.role for index, text in zip(pairs, new, strict=True))
        and not (at_end and pairs != sorted(pairs, key=lambda index: index is None))
    ]
    found = pair_gap(old, new, at_end=at_end)
    assert found in possible
    assert _rate(old, new, found) == max(_rate(old, new, pairs) for pairs in possible)
