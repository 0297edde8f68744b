"""Which messages are folded next, and onto what, against the rules spelled out."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.head import Sent
from app.narratives.chain import Chain, Link
from app.summary.folding import (
    MOST_MESSAGES,
    choose_range_over,
    choose_range_up_to,
    find_due_end,
    keep_before,
    reach,
)
from tests.narratives.chains import chains


@st.composite
def uncovered(draw: st.DrawFn) -> tuple[int, list[Sent]]:
    """The last covered seq, and messages behind it with gaps between them."""
    covered = draw(st.integers(0, 20))
    gaps = draw(st.lists(st.integers(1, 3), max_size=90))
    seq, sent = covered, []
    for gap in gaps:
        seq += gap
        sent.append(Sent(seq, is_user=bool(seq % 2)))
    return covered, sent


@given(uncovered(), st.integers(1, 30), st.integers(1, 25))
def test_over_the_threshold_a_fold_leaves_what_is_kept(
    given_messages: tuple[int, list[Sent]], threshold: int, keep: int
) -> None:
    covered, sent = given_messages
    found = choose_range_over(sent, covered, threshold=threshold, keep=keep)
    if found is None:
        assert len(sent) <= max(threshold, keep)
        return
    first, last = found
    folded = [one for one in sent if one.seq <= last]
    left = len(sent) - len(folded)
    assert first == covered + 1
    assert len(sent) > threshold
    assert 0 < len(folded) <= MOST_MESSAGES
    assert left >= keep
    assert left == keep or len(folded) == MOST_MESSAGES


@given(uncovered(), st.integers(0, 250))
def test_a_due_range_is_folded_completely_or_in_parts(given_messages: tuple[int, list[Sent]], until_seq: int) -> None:
    covered, sent = given_messages
    end_seq = find_due_end(sent, anchor_seq=1, until_seq=until_seq)
    if end_seq is None:
        assert not sent or until_seq < sent[0].seq
        return
    first, last = choose_range_up_to(end_seq, sent, covered)
    folded = [one for one in sent if one.seq <= last]
    assert first == covered + 1
    assert 0 < len(folded) <= MOST_MESSAGES
    assert last == end_seq or (last < end_seq and len(folded) == MOST_MESSAGES)


@pytest.mark.parametrize(
    ("seqs", "anchor_seq", "until_seq", "end_seq"),
    [
        ([], 9, 20, None),
        ([5], 9, 20, 8),
        ([8], 9, 0, 8),
        ([9], 9, 0, None),
        ([9], 9, 20, 20),
        ([20], 9, 20, 20),
        ([21], 9, 20, None),
        ([5, 30], 9, 3, 8),
        ([1], 1, 0, None),
    ],
)
def test_messages_before_the_history_are_due_first(
    seqs: list[int], anchor_seq: int, until_seq: int, end_seq: int | None
) -> None:
    assert find_due_end([Sent(seq) for seq in seqs], anchor_seq, until_seq) == end_seq


@given(uncovered(), st.integers(2, 30), st.integers(1, 25), st.integers(0, 120))
def test_unread_messages_change_nothing_of_the_beginning(
    given_messages: tuple[int, list[Sent]], threshold: int, keep: int, until_seq: int
) -> None:
    covered, sent = given_messages
    read = sent[: reach(threshold, keep)]
    whole = choose_range_over(sent, covered, threshold=threshold, keep=keep)
    assert choose_range_over(read, covered, threshold=threshold, keep=keep) == whole
    if find_due_end(sent, 1, until_seq) is not None:
        assert choose_range_up_to(until_seq, read, covered) == choose_range_up_to(until_seq, sent, covered)


@given(st.integers(1, 30), st.integers(0, 4))
def test_a_tool_call_keeps_its_result(at: int, between: int) -> None:
    sent = [Sent(seq) for seq in range(1, 41)]
    sent[at - 1] = Sent(at, calls=("call",))
    sent[at + between] = Sent(at + between + 1, answers="call")
    found = choose_range_over(sent, 0, threshold=20, keep=15)
    assert found is None or not at <= found[1] < at + between + 1


@given(st.integers(1, 45), st.integers(0, 4))
def test_a_long_range_ends_before_a_tool_call(at: int, between: int) -> None:
    sent = [Sent(seq) for seq in range(1, 61)]
    sent[at - 1] = Sent(at, calls=("call",))
    sent[at + between] = Sent(at + between + 1, answers="call")
    first, last = choose_range_up_to(60, sent, 0)
    reaches_over = at <= MOST_MESSAGES < at + between + 1
    assert (first, last) == (1, at - 1 if reaches_over else MOST_MESSAGES)


def test_as_many_as_a_fold_takes_are_one_part() -> None:
    sent = [*(Sent(seq) for seq in range(1, MOST_MESSAGES + 1)), Sent(60)]
    assert choose_range_up_to(50, sent, 0) == (1, 50)


def test_a_call_longer_than_a_fold_is_divided() -> None:
    sent = [Sent(1, calls=("call",)), *(Sent(seq) for seq in range(2, 50)), Sent(50, answers="call")]
    assert choose_range_up_to(50, sent, 0) == (1, MOST_MESSAGES)


def test_a_threshold_of_20_folds_down_to_15_messages() -> None:
    sent = [Sent(seq) for seq in range(1, 21)]
    assert choose_range_over(sent, 0, threshold=20, keep=15) is None
    sent.append(Sent(21))
    assert choose_range_over(sent, 0, threshold=20, keep=15) == (1, 6)


# --- what is folded onto ---


def folds(*ends: int) -> list[Link]:
    """Versions of the service that end at these seqs, each folded onto the one before."""
    return [
        Link(number, number - 1 or None, first_seq + 1, last_seq, "model", True)
        for number, (first_seq, last_seq) in enumerate(pairwise([0, *ends]), start=1)
    ]


def test_a_chain_that_ends_before_the_history_is_kept() -> None:
    assert keep_before(Chain(folds(10, 20)), 21) is None
    assert keep_before(Chain(), 1) is None


def test_a_chain_is_kept_up_to_where_the_history_begins() -> None:
    links = folds(10, 20, 30)
    assert keep_before(Chain(links), 30) == Chain(links[:2])
    assert keep_before(Chain(links), 21) == Chain(links[:2])
    assert keep_before(Chain(links), 20) == Chain(links[:1])
    assert keep_before(Chain(links), 5) == Chain([])


def test_only_what_is_valid_reaches_into_the_history() -> None:
    first, second, third = folds(10, 20, 30)
    stale = Chain([first, second._replace(is_fresh=False), third])
    assert keep_before(stale, 11) is None
    assert keep_before(stale, 10) == Chain([])


def test_a_text_by_a_person_is_never_given_up() -> None:
    links = folds(10, 20, 30)
    assert keep_before(Chain([*links[:2], links[2]._replace(origin="person")]), 25) is None
    assert keep_before(Chain([links[0], links[1]._replace(origin="person"), links[2]]), 15) is None
    written = [links[0]._replace(origin="person"), *links[1:]]
    assert keep_before(Chain(written), 25) == Chain(written[:2])
    assert keep_before(Chain(written), 15) == Chain(written[:1])


@given(chains(), st.integers(1, 40))
def test_the_kept_chain_is_valid_and_ends_before_the_history(chain: Chain, begins_seq: int) -> None:
    kept = keep_before(chain, begins_seq)
    if kept is None:
        written = any(link.origin == "person" for link in chain.links)
        assert written or chain.covered < begins_seq
        return
    given_up = chain.links[len(kept.links) :]
    assert [*kept.links, *given_up] == chain.links
    assert kept.latest_valid() == chain.latest_valid(begins_seq)
    assert kept.covered < begins_seq <= chain.covered
    assert all(link.origin != "person" or link.last_unit <= kept.covered for link in given_up)
