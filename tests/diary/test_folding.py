"""Which entries are folded next, and into how many lines."""

from hypothesis import given
from hypothesis import strategies as st

from app.diary.folding import find_fold, fit_lines, lines_of, most_folded_lines, step_hash

limits = st.integers(1, 60)
diaries = st.lists(st.integers(2, 12), max_size=20).map(
    lambda lines: [(2 * number + 1, count) for number, count in enumerate(lines)]
)


def _text(folded_lines: int, entries: list[tuple[int, int]]) -> str:
    """Return a diary of so many lines, without its heading."""
    blocks = ["\n".join(["x"] * lines) for lines in (folded_lines, *(lines for _, lines in entries)) if lines]
    return "\n\n".join(blocks)


@given(st.integers(0, 30), diaries)
def test_lines_are_counted_as_in_the_prompt(folded_lines: int, entries: list[tuple[int, int]]) -> None:
    text = _text(folded_lines, entries)
    assert lines_of(folded_lines, [lines for _, lines in entries]) == (len(text.split("\n")) if text else 0)


@given(st.integers(0, 70), diaries, limits)
def test_as_few_entries_are_folded_as_leave_half_of_the_room(
    folded_lines: int, entries: list[tuple[int, int]], limit: int
) -> None:
    last = find_fold(folded_lines, entries, limit)
    if not entries or len(_text(folded_lines, entries).split("\n")) <= limit:
        assert last is None
        return
    room = max(0, limit - folded_lines) // 2
    fewest = next(
        number
        for at, (number, _) in enumerate(entries, start=1)
        if not entries[at:] or len(_text(0, entries[at:]).split("\n")) <= room
    )
    assert last == fewest


@given(st.integers(0, 70), diaries, limits, st.integers(0, 70))
def test_after_a_fold_everything_is_shown_and_none_is_due(
    folded_lines: int, entries: list[tuple[int, int]], limit: int, made_lines: int
) -> None:
    last = find_fold(folded_lines, entries, limit)
    if last is None:
        return
    left = [(number, lines) for number, lines in entries if number > last]
    folded = [lines for number, lines in entries if number <= last]
    made = min(made_lines, most_folded_lines(limit, lines_of(folded_lines, folded)))
    assert find_fold(made, left, limit) is None
    assert lines_of(made, [lines for _, lines in left]) <= limit


@given(limits, st.integers(2, 70))
def test_a_fold_has_fewer_lines_and_at_most_half_of_the_limit(limit: int, former: int) -> None:
    most = most_folded_lines(limit, former)
    assert 1 <= most < former
    assert most <= max(1, limit / 2)


@given(st.text(st.sampled_from("ab \n\r"), max_size=40), st.integers(1, 6))
def test_fitting_lines_keeps_every_word_in_order(text: str, most: int) -> None:
    fitted = fit_lines(text, most)
    assert fitted.split() == text.split()
    assert len(fitted.split("\n")) <= most
    assert fit_lines(fitted, most) == fitted


def test_the_oldest_lines_become_one_paragraph() -> None:
    assert fit_lines("one\n\ntwo\nthree\n four ", 3) == "one two\nthree\nfour"


@given(st.lists(st.tuples(st.integers(1, 9), st.text(max_size=3)), max_size=4))
def test_the_hash_of_a_step_depends_on_every_entry(members: list[tuple[int, str]]) -> None:
    says = step_hash(members)
    assert says == step_hash(iter(members))
    for at, (number, content) in enumerate(members):
        for other in ((number, content + "!"), (number + 1, content)):
            assert step_hash([*members[:at], other, *members[at + 1 :]]) != says
        assert step_hash([*members[:at], *members[at + 1 :]]) != says
