import pytest

from app.reimport.swipe_choice import choose_swipe


def _split(texts: str) -> list[str]:
    return texts.split()


@pytest.mark.parametrize(
    ("known", "selected", "given", "given_index", "outcome"),
    [
        ("a", 0, "b", 0, (0, [])),  # a is no longer given, so it was edited
        ("a", 0, "a b", 1, (1, [(1, "b")])),
        ("a", 0, "b a", 1, (0, [(1, "b")])),
        ("a b c", 1, "a x c", 1, (1, [])),
        ("a b c", 0, "a x c", 1, (1, [])),
        ("a b c", 1, "a c", 1, (2, [])),
        ("a b c", 1, "a c d", 2, (3, [(3, "d")])),
        ("a b", 0, "a b x y", 3, (3, [(2, "x"), (3, "y")])),
        ("a b", 0, "a b x x", 0, (0, [(2, "x")])),
        ("a a", 0, "a a", 1, (1, [])),
    ],
)
def test_given_swipes_are_selected_edited_or_added(
    known: str, selected: int, given: str, given_index: int, outcome: tuple[int, list[tuple[int, str]]]
) -> None:
    texts = _split(given)
    assert choose_swipe(dict(enumerate(_split(known))), selected, texts[given_index], texts, given_index) == outcome


@pytest.mark.parametrize(
    ("known", "selected", "content", "outcome"),
    [("a b", 1, "x", (1, [])), ("a b", 1, "a", (0, [])), ("a b a", 2, "a", (2, [])), ("a b b", 0, "b", (1, []))],
)
def test_a_text_without_swipes_is_selected_or_edited(
    known: str, selected: int, content: str, outcome: tuple[int, list[tuple[int, str]]]
) -> None:
    assert choose_swipe(dict(enumerate(_split(known))), selected, content, (), 0) == outcome
