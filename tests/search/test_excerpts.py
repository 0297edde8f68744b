"""The parts of long texts that are compared with a query."""

from hypothesis import given
from hypothesis import strategies as st

from app.search.excerpts import MOST_CHARS, list_excerpts, share_chars

LONG = "x " * (MOST_CHARS // 2)


@given(st.lists(st.integers(0, MOST_CHARS), max_size=12))
def test_short_texts_leave_their_share_to_long_ones(lengths: list[int]) -> None:
    share = share_chars(lengths)
    compared = sum(min(one, share) for one in lengths)
    assert compared <= MOST_CHARS
    if any(one > share for one in lengths):
        assert compared > MOST_CHARS - len(lengths)


def test_a_long_text_among_short_ones_is_compared_as_a_whole() -> None:
    texts = ["a note in the garden"] * 500 + ["x" * 100_000] * 9
    assert list_excerpts(texts, ["garden"]) == texts


def test_an_excerpt_has_its_beginning_and_each_pattern() -> None:
    text = f"It began. {LONG} the Amulet {LONG} the zebrafish {LONG} the amulet again"
    excerpt, _ = list_excerpts([text, LONG], ["amulet", "zebrafish", "nowhere"])
    assert excerpt.startswith("It began.")
    assert "the Amulet" in excerpt
    assert "the zebrafish" in excerpt
    assert excerpt.index("Amulet") < excerpt.index("zebrafish")


@given(st.lists(st.text("ab ", max_size=60), max_size=8), st.sets(st.sampled_from(["a", "ab", "ba", "aab"])))
def test_excerpts_consist_of_parts_of_their_texts(texts: list[str], patterns: set[str]) -> None:
    longer = [one * (MOST_CHARS // 100) for one in texts]
    for text, excerpt in zip(longer, list_excerpts(longer, patterns), strict=True):
        assert len(excerpt) <= len(text)
        assert all(part in text for part in excerpt.split("\n"))
