import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.consolidation.learnt import Learnt, shorten


@pytest.mark.parametrize(
    ("kind", "key", "content", "sources", "importance"),
    [
        ("fact", None, "Mira", (1,), 0.5),
        ("memory", "name", "Mira", (1,), 0.5),
        ("memory", None, "", (1,), 0.5),
        ("memory", None, "Mira sings.", (), 0.5),
        ("memory", None, "Mira sings.", (1,), 1.5),
        ("memory", None, "Mira sings.", (1,), float("nan")),
    ],
)
def test_an_incomplete_or_invalid_item_is_refused(
    kind: str, key: str | None, content: str, sources: tuple[int, ...], importance: float
) -> None:
    with pytest.raises(ValueError, match="must"):
        Learnt(kind, key, content, sources, None, importance)  # type: ignore[arg-type]


@given(st.text(max_size=60), st.integers(2, 40))
def test_a_shortened_text_is_its_beginning_with_a_mark(text: str, chars: int) -> None:
    short = shorten(text, chars)
    assert len(short) <= chars
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))
