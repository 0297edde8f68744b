import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reimport.diff import Alignment, Existing, Wanted, align
from tests.slowness import SLOWNESS

QUICKLY_S = 3 * SLOWNESS


def _line(texts: str) -> list[Existing]:
    """The user's messages m1, m2, …, each of one word; one with a minus is a tombstone."""
    return [
        Existing(seq, f"m{seq}", "user", None, word.removeprefix("-"), word.startswith("-"))
        for seq, word in enumerate(texts.split(), start=1)
    ]


def _want(texts: str) -> list[Wanted]:
    """The user's messages, each of one word, with its id before it where it has one: `m1:hello`."""
    parts = [word.rpartition(":") for word in texts.split()]
    return [Wanted(message_id or None, "user", None, word) for message_id, _, word in parts]


def _align(line: str, wanted: str) -> Alignment:
    return align(_line(line), _want(wanted))


# --- What can be made in place ---------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["a b c", "m1:a m2:b m3:c", "a m2:b c", ""])
def test_an_identical_list_changes_nothing(wanted: str) -> None:
    line = "a b c" if wanted else ""
    assert _align(line, wanted) == Alignment((1, 2, 3)[: len(_line(line))], (), None)


def test_a_message_with_an_id_is_matched_after_an_edit() -> None:
    assert _align("a b c", "m1:a m2:other m3:c") == Alignment((1, 2, 3), (), None)


def test_an_edit_beside_messages_without_ids_is_made_in_place() -> None:
    assert _align("a b c", "a m2:other c") == Alignment((1, 2, 3), (), None)


def test_a_message_that_is_missing_is_removed_in_place() -> None:
    assert _align("a b c", "a c") == Alignment((1, 3), (2,), None)
    assert _align("a b c", "m1:a m2:b") == Alignment((1, 2), (3,), None)
    assert _align("a b c", "") == Alignment((), (1, 2, 3), None)


def test_a_new_message_at_the_end_is_appended() -> None:
    assert _align("a b", "a b c m9:d") == Alignment((1, 2, None, None), (), None)
    assert _align("", "a b") == Alignment((None, None), (), None)


def test_an_edit_without_id_is_made_in_place() -> None:
    assert _align("a b c", "a b other") == Alignment((1, 2, 3), (), None)
    assert _align("a b c", "a other c") == Alignment((1, 2, 3), (), None)
    assert _align("a b c", "other b another") == Alignment((1, 2, 3), (), None)


def test_a_tombstone_wanted_in_place_is_revived() -> None:
    assert _align("a -b c", "a m2:b c") == Alignment((1, 2, 3), (), None)
    assert _align("a -b c", "m2:b c d") == Alignment((2, 3, None), (1,), None)


def test_only_a_tombstone_at_the_end_is_found_by_its_text() -> None:
    assert _align("a -b", "a b") == Alignment((1, 2), (), None)
    assert _align("a -b c", "a b c") == Alignment((1, None, 3), (), 1)
    assert _align("a -b c", "a c b") == Alignment((1, 3, None), (), None)


def test_tombstones_at_the_end_are_revived_in_order() -> None:
    assert _align("a -b -c -d -e", "a b d e f") == Alignment((1, 2, 4, 5, None), (), None)
    assert _align("a -b -c -d", "a c b d") == Alignment((1, 3, None, None), (), None)
    assert _align("a -b -c", "a new b c") == Alignment((1, None, None, None), (), None)
    assert _align("a -b -c", "a m9:b c") == Alignment((1, None, None), (), None)
    assert _align("a -b -b", "a b m2:x") == Alignment((1, None, 2), (), 1)
    assert _align("-a -b", "a b") == Alignment((1, 2), (), None)


def test_a_tombstone_without_text_is_not_found_by_it() -> None:
    line = [Existing(1, "m1", "user", None, "a"), Existing(2, "m2", "assistant", None, " ", deleted=True)]
    assert align(line, [*_want("a"), Wanted(None, "assistant", None, " ")]).matches == (1, None)


def test_a_tombstone_at_the_end_is_revived_on_a_new_line_too() -> None:
    assert _align("a b -c", "a X b c") == Alignment((1, None, 2, 3), (), 1)


def test_tombstones_do_not_shorten_the_common_head_and_tail() -> None:
    line = "-x ok -x a ok -x b ok -x c -x"
    assert _align(line, "ok a ok b ok c") == Alignment((2, 4, 5, 7, 8, 10), (), None)
    assert _align(line, "new ok a ok b ok c") == Alignment((None, 2, 4, 5, 7, 8, 10), (), 0)


def test_a_revived_tombstone_counts_for_common_head_and_tail() -> None:
    assert _align("a -b ok c ok", "a m2:b ok ok c ok") == Alignment((1, 2, 3, None, 4, 5), (), 3)
    assert _align("ok c ok -b a", "new ok c ok m4:b a") == Alignment((None, 1, 2, 3, 4, 5), (), 0)


def test_an_edit_to_the_text_of_another_message_is_in_place() -> None:
    assert _align("a b x c ok d", "A ok x c ok D") == Alignment((1, 2, 3, 4, 5, 6), (), None)
    assert _align("a b x c ok d", "A ok x c d") == Alignment((1, 2, 3, 4, 6), (5,), None)
    assert _align("a b x c ok d", "A ok x c other D") == Alignment((1, 2, 3, 4, 5, 6), (), None)


def _align_turns(line: str, wanted: str) -> Alignment:
    """Align messages of which every other one is the character's, without ids."""
    roles = ("user", "assistant")
    old = [message._replace(role=roles[at % 2]) for at, message in enumerate(_line(line))]
    return align(old, [message._replace(role=roles[at % 2]) for at, message in enumerate(_want(wanted))])


def test_edits_to_each_others_texts_are_in_place() -> None:
    assert _align_turns("z a d a b", "d a y a b") == Alignment((1, 2, 3, 4, 5), (), None)
    assert _align_turns("z a d a b -x", "m3:d a y a b") == Alignment((3, 2, None, 4, 5), (1,), 0)
    assert _align_turns("z a d a b -m", "d a y a b m6:m") == Alignment((1, 2, 3, 4, 5, 6), (), None)


def test_more_changed_places_than_messages_start_a_new_line() -> None:
    assert _align("a b c d e f g", "a X d b e f g") == Alignment((1, None, 4, 2, 5, 6, 7), (3,), 1)
    assert _align_turns("a b c d e f g", "a b e f Y Z g") == Alignment((1, 2, 5, 6, None, None, 7), (3, 4), 4)


def test_at_the_end_no_new_message_comes_before_a_paired_one() -> None:
    line = [Existing(1, "m1", "user", None, "a"), Existing(2, "m2", "assistant", None, "b")]
    again = [Wanted(None, "user", None, "a"), Wanted(None, "user", None, "c"), Wanted(None, "assistant", None, "d")]
    assert align(line, again) == Alignment((1, None, None), (2,), None)
    assert align(line, [again[0], Wanted("m9", "user", None, "c"), again[2]]) == Alignment((1, None, None), (2,), None)
    assert align(line, [again[0], again[2], again[1]]) == Alignment((1, 2, None), (), None)


def test_messages_beside_a_moved_one_are_not_paired() -> None:
    assert _align("a b c d e", "a X d b e") == Alignment((1, None, 4, 2, 5), (3,), 1)


# --- What starts a new line ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "matches", "diverges_at"),
    [
        ("X a b c", (None, 1, 2, 3), 0),
        ("a X b c", (1, None, 2, 3), 1),
        ("a m9:X b c", (1, None, 2, 3), 1),
        ("a b X c", (1, 2, None, 3), 2),
        ("a b X c Y", (1, 2, None, 3, None), 2),
    ],
)
def test_an_insertion_starts_a_new_line_at_its_position(
    wanted: str, matches: tuple[int | None, ...], diverges_at: int
) -> None:
    assert _align("a b c", wanted) == Alignment(matches, (), diverges_at)


@pytest.mark.parametrize(
    ("wanted", "matches", "diverges_at"),
    [
        ("a c b d", (1, 3, 2, 4), 1),
        ("m1:a m3:c m2:b m4:d", (1, 3, 2, 4), 1),
        ("b c d a", (2, 3, 4, 1), 0),
        ("d a b c", (4, 1, 2, 3), 0),
        ("a b d c", (1, 2, 4, 3), 2),
    ],
)
def test_reordered_messages_start_a_new_line(wanted: str, matches: tuple[int | None, ...], diverges_at: int) -> None:
    assert _align("a b c d", wanted) == Alignment(matches, (), diverges_at)


def test_a_new_line_may_drop_unwanted_messages_of_its_head() -> None:
    assert _align("a b c d e", "a c e d") == Alignment((1, 3, 5, 4), (2,), 2)


def test_a_tombstone_wanted_elsewhere_starts_a_new_line() -> None:
    assert _align("a -b c d", "a c m2:b d") == Alignment((1, 3, 2, 4), (), 1)
    assert _align("a -b c d", "m2:b a c d") == Alignment((2, 1, 3, 4), (), 0)


# --- What is the same message ----------------------------------------------------------------------


def test_an_unknown_id_is_a_new_message() -> None:
    assert _align("a b", "a m9:b") == Alignment((1, None), (2,), None)


def test_a_message_that_an_id_claims_is_not_found_by_its_text() -> None:
    assert _align("ok a ok", "ok a m1:ok") == Alignment((3, 2, 1), (), 0)
    assert _align("ok a", "ok m1:ok a") == Alignment((None, 1, 2), (), 0)


def test_a_moved_message_with_an_id_is_not_paired_with_a_text() -> None:
    assert _align("a a a a -b a a a a", "b m2:a m3:a m1:a") == Alignment((None, 2, 3, 1), (4, 6, 7, 8, 9), 0)


def test_a_message_is_not_new_while_an_equal_one_is_left() -> None:
    line = [*_line("a a a"), Existing(4, "m4", "assistant", "Kai", "a"), *_line("a a a a a a")[4:]]
    kai = Wanted("m5", "assistant", "Kai", "a")
    assert align(line, [*_want("b"), kai, kai._replace(message_id=None)]).matches == (None, 5, 4)


@pytest.mark.parametrize(
    ("wanted", "same"),
    [
        (Wanted(None, "assistant", "Kai", "ok"), True),
        (Wanted(None, "user", "Kai", "ok"), False),
        (Wanted(None, "assistant", None, "ok"), False),
        (Wanted(None, "assistant", "Kai", "ok."), False),
        (Wanted("m1", "user", "Mira", "no"), True),
    ],
)
def test_without_id_messages_match_by_role_name_and_content(wanted: Wanted, same: bool) -> None:
    line = [Existing(1, "m1", "assistant", "Kai", "ok"), Existing(2, "m2", "user", None, "a")]
    alignment = align(line, [Wanted("m2", "user", None, "a"), wanted])
    assert alignment.matches == ((2, 1) if same else (2, None))


def test_equal_messages_are_matched_in_order() -> None:
    assert _align("a ok b ok c ok", "a ok b ok c ok") == Alignment((1, 2, 3, 4, 5, 6), (), None)
    assert _align("a ok b ok c ok", "b ok c ok") == Alignment((3, 4, 5, 6), (1, 2), None)
    assert _align("ok ok ok", "ok ok ok ok") == Alignment((1, 2, 3, None), (), None)


def test_after_removal_of_an_equal_message_the_second_one_stays() -> None:
    assert _align("a ok b ok c", "a b ok c") == Alignment((1, 3, 4, 5), (2,), None)
    assert _align("a ok b ok c", "a b ok c d") == Alignment((1, 3, 4, 5, None), (2,), None)


def test_after_an_insertion_equal_messages_match_from_the_end() -> None:
    assert _align("a ok b ok", "ok a ok b ok") == Alignment((None, 1, 2, 3, 4), (), 0)
    assert _align("a ok b ok", "a ok ok b ok") == Alignment((1, 2, None, 3, 4), (), 2)


def test_appended_messages_may_repeat_the_end_of_the_line() -> None:
    assert _align("a x ok", "a ok c ok") == Alignment((1, 3, None, None), (2,), None)


def test_a_match_after_the_last_one_is_preferred() -> None:
    assert _align("ok a ok b", "X b ok a ok Y") == Alignment((None, 4, 1, 2, 3, None), (), 0)
    assert _align("ok a ok b", "X a ok b ok Y") == Alignment((1, 2, 3, 4, None, None), (), None)
    assert _align("ok a ok b", "X a m9:new ok b Y") == Alignment((1, 2, None, 3, 4, None), (), 2)


# --- Anything with anything ------------------------------------------------------------------------

_saids = st.tuples(st.sampled_from(["user", "assistant"]), st.sampled_from([None, "Kai"]), st.sampled_from("ab"))


@st.composite
def lines(draw: st.DrawFn) -> list[Existing]:
    """Lines with few texts, so that many messages are equal, and with gaps in the seqs."""
    line = []
    seq = 0
    for said, deleted in draw(st.lists(st.tuples(_saids, st.sampled_from([False, False, True])), max_size=9)):
        seq += draw(st.integers(1, 2))
        line.append(Existing(seq, f"m{seq}", *said, deleted))
    return line


def _of(draw: st.DrawFn, message: Existing) -> Wanted:
    """`message` as a caller may give it: by its id, perhaps edited, or by what it says."""
    said = message[2:5]
    form = draw(st.sampled_from(["id", "edited", "text"]))
    return Wanted(None if form == "text" else message.message_id, *(draw(_saids) if form == "edited" else said))


@st.composite
def rewritings(draw: st.DrawFn) -> tuple[list[Existing], list[Wanted]]:
    """A line, and a list made from it by leaving out, moving, editing and adding."""
    line = draw(lines())
    indexes = draw(st.lists(st.integers(0, len(line) - 1), unique=True)) if line else []
    if draw(st.booleans()):
        indexes.sort()
    wanted = [_of(draw, line[index]) for index in indexes]
    for number in range(draw(st.integers(0, 3))):
        new = Wanted(draw(st.sampled_from([None, f"n{number}"])), *draw(_saids))
        wanted.insert(draw(st.integers(0, len(wanted))), new)
    return line, wanted


def _carry_out(line: Sequence[Existing], wanted: Sequence[Wanted], alignment: Alignment) -> list[Existing]:
    """The line, or the new line, that `alignment` makes of `line`, by the rules for lines."""
    if alignment.diverges_at is None:
        known = sum(match is not None for match in alignment.matches)
        copied = list(line)
    else:
        known = alignment.diverges_at
        last_seq = alignment.matches[known - 1] or 0 if known else 0
        copied = [message for message in line if message.seq <= last_seq]
    by_seq = dict(zip(alignment.matches[:known], wanted[:known], strict=True))
    outcome = [
        message._replace(role=kept.role, name=kept.name, content=kept.content, deleted=False)
        if (kept := by_seq.get(message.seq))
        else message._replace(deleted=True)
        for message in copied
    ]
    ids = {message.seq: message.message_id for message in line}
    for number, (message, match) in enumerate(zip(wanted[known:], alignment.matches[known:], strict=True)):
        message_id = message.message_id or (ids[match] if match else f"made{number}")
        seq = outcome[-1].seq + 1 if outcome else 1
        outcome.append(Existing(seq, message_id, *message.said, False))
    return outcome


def _is_in_place(matches: Sequence[int | None]) -> bool:
    known = [match for match in matches if match is not None]
    return list(matches) == sorted(known) + [None] * (len(matches) - len(known))


def _longest_head(matches: Sequence[int | None]) -> int:
    """The slow and obvious head: known messages in order, none of which has a later one's place before it."""
    for count in range(len(matches), 0, -1):
        head = [match for match in matches[:count] if match is not None]
        later = [match for match in matches[count:] if match is not None]
        if len(head) == count and head == sorted(head) and all(seq > head[-1] for seq in later):
            return count
    return 0


@given(rewritings())
def test_applying_the_alignment_gives_the_wanted_list_and_ids(
    rewriting: tuple[list[Existing], list[Wanted]],
) -> None:
    line, wanted = rewriting
    alignment = align(line, wanted)
    outcome = _carry_out(line, wanted, alignment)
    living = [message for message in outcome if not message.deleted]
    assert [message.said for message in living] == [message.said for message in wanted]
    assert len({message.message_id for message in outcome}) == len(outcome)
    ids = {message.seq: message.message_id for message in line}
    for message, asked, match in zip(living, wanted, alignment.matches, strict=True):
        assert asked.message_id in (None, message.message_id)
        assert match is None or message.message_id == ids[match]


@given(rewritings())
def test_aligning_the_outcome_again_finds_nothing_to_do(rewriting: tuple[list[Existing], list[Wanted]]) -> None:
    line, wanted = rewriting
    outcome = _carry_out(line, wanted, align(line, wanted))
    living = tuple(message.seq for message in outcome if not message.deleted)
    assert align(outcome, wanted) == Alignment(living, (), None)


@given(rewritings())
def test_a_message_matches_once_and_is_new_only_without_a_match(
    rewriting: tuple[list[Existing], list[Wanted]],
) -> None:
    line, wanted = rewriting
    alignment = align(line, wanted)
    matched = [match for match in alignment.matches if match is not None]
    assert len(set(matched)) == len(matched)
    by_id = {message.message_id: message for message in line}
    by_seq = {message.seq: message for message in line}
    given_ids = {message.message_id for message in wanted}
    free = {
        message.seq: message.said for message in line if not message.deleted and message.message_id not in given_ids
    }
    left = {said for seq, said in free.items() if seq not in matched}
    for message, match in zip(wanted, alignment.matches, strict=True):
        if message.message_id is not None:
            assert match == (by_id[message.message_id].seq if message.message_id in by_id else None)
        elif match is not None:
            assert by_seq[match].said == message.said if by_seq[match].deleted else free[match].role == message.role
        else:
            assert message.said not in left
    assert alignment.removed == tuple(seq for seq in free if seq not in matched)


@given(rewritings())
def test_a_new_line_starts_only_if_needed_with_the_longest_head(
    rewriting: tuple[list[Existing], list[Wanted]],
) -> None:
    alignment = align(*rewriting)
    matches = alignment.matches
    assert alignment.diverges_at == (None if _is_in_place(matches) else _longest_head(matches))


@given(rewritings())
def test_the_next_equal_message_matches_else_the_earliest(
    rewriting: tuple[list[Existing], list[Wanted]],
) -> None:
    line, wanted = rewriting
    alignment = align(line, [Wanted("first", "user", None, "a"), *wanted, Wanted("last", "user", None, "a")])
    seq_by_id = {message.message_id: message.seq for message in line}
    given_ids = {message.message_id for message in wanted}
    free = [message for message in line if not message.deleted and message.message_id not in given_ids]
    expected: list[int | None] = []
    last_seq = 0
    for message in wanted:
        match = seq_by_id.get(message.message_id) if message.message_id else None
        if message.message_id is None:
            equal = [found.seq for found in free if found.said == message.said and found.seq not in expected]
            match = next((seq for seq in equal if seq > last_seq), next(iter(equal), None))
        expected.append(match)
        last_seq = last_seq if match is None else match
    found = alignment.matches[1:-1]
    assert [found[index] for index, match in enumerate(expected) if match] == [match for match in expected if match]


@st.composite
def continuations(draw: st.DrawFn) -> tuple[list[Existing], list[Wanted], list[Wanted]]:
    """A line, what is kept of it in order, by ids or by texts, and what is to follow behind that."""
    line = draw(lines())
    kept = []
    removed = set()
    for message in line:
        if not draw(st.booleans()):
            removed |= set() if message.deleted else {message.said}
        elif message.deleted:
            kept.append(Wanted(message.message_id, *draw(_saids)))
        else:
            kept.append(_of(draw, message))
    # What says the same as something that was removed could as well be that, moved to the end.
    said = _saids.map(lambda drawn: ("user", None, "new") if drawn in removed else drawn)
    return line, kept, [Wanted(None, *appended) for appended in draw(st.lists(said, max_size=4))]


@given(continuations())
def test_edits_removals_revivals_and_appends_stay_in_place(
    continuation: tuple[list[Existing], list[Wanted], list[Wanted]],
) -> None:
    line, kept, appended = continuation
    alignment = align(line, [*kept, *appended])
    assert alignment.diverges_at is None
    assert None not in alignment.matches[: len(kept)]


@st.composite
def edited_twice(draw: st.DrawFn) -> tuple[str, str]:
    """The texts of a chat, and the same with two of them replaced; most texts occur several times."""
    texts = draw(st.lists(st.sampled_from("aabcd"), min_size=2, max_size=10))
    edited = list(texts)
    for index in draw(st.lists(st.integers(0, len(texts) - 1), min_size=1, max_size=2, unique=True)):
        edited[index] = draw(st.sampled_from("aabcdxy"))
    return " ".join(texts), " ".join(edited)


@given(edited_twice())
def test_two_edits_are_in_place_unless_texts_only_moved(case: tuple[str, str]) -> None:
    texts, edited = case
    if sorted(texts) != sorted(edited):
        assert _align_turns(texts, edited).diverges_at is None


def test_long_lists_without_an_equal_text_are_paired_quickly() -> None:
    count = 20_000
    roles = ("user", "assistant")
    line = [Existing(seq, f"m{seq}", roles[seq % 2], None, f"a{seq}") for seq in range(1, count)]
    wanted = [Wanted(None, roles[seq % 2], None, f"b{seq}") for seq in range(1, count)]
    started_s = time.process_time()
    whole = align(line, wanted)
    assert align(line, wanted[1:]).matches == tuple(range(2, count))
    assert (
        time.process_time() - started_s < 3 * SLOWNESS
    )  # a tenth of a second; comparing all with each other takes minutes
    assert whole == Alignment(tuple(range(1, count)), (), None)


def test_two_long_lists_of_equal_messages_are_aligned_quickly() -> None:
    count = 20_000
    line = _line("ok " * count + "a " * count)
    by_ids = _want(" ".join(f"m{count + number}:a ok" for number in range(1, count + 1)))
    started_s = time.process_time()
    alignment = align(line, [*by_ids, Wanted(None, "user", None, "new")])
    assert (
        time.process_time() - started_s < 3 * SLOWNESS
    )  # a tenth of a second; looking through all for each takes minutes
    assert sorted(match for match in alignment.matches if match) == list(range(1, 2 * count + 1))
    assert alignment.diverges_at == 0
