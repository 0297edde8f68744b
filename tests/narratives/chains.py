"""Chains of versions, as property tests draw them."""

from hypothesis import strategies as st

from app.narratives.chain import Chain, Link

ORIGINS = st.sampled_from(("model", "extractive", "person"))


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """Any chain: steps of any length, any of them stale, any of them by a person."""
    links: list[Link] = []
    place = 0
    for version in range(1, draw(st.integers(0, 12)) + 1):
        length = draw(st.integers(0, 4))
        base = links[-1].version if links else None
        clean, deleted, has_kept = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
        links.append(Link(version, base, place + 1, place + length, draw(ORIGINS), clean, deleted, has_kept))
        place += length
    return Chain(links)
