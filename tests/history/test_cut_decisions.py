"""What is decided about a cut: where the anchor moves and why, or what the cut waits for."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.head import Sent
from app.history.cut import (
    LINE_FIRST_SEQ,
    AwaitAppend,
    AwaitCoverage,
    AwaitEdge,
    Cut,
    CutCursor,
    CutRules,
    History,
    Skip,
    can_cut,
    count_from,
    decide_cold,
    decide_full,
    decide_move,
    decide_rewind,
    decide_session,
    decide_wait,
    find_target,
    is_decision_due,
    is_full,
)

RULES = CutRules(keep_messages=4, max_messages=12, layers_add_edges=True)
FIXED_EDGES = CutRules(keep_messages=4, max_messages=12, layers_add_edges=False)


def history(
    messages: int, edges: Sequence[int], *, rules: CutRules = RULES, from_seq: int = 1, uncounted: int = 0
) -> History:
    """A history of so many messages, every second one by the user."""
    sent = [Sent(seq, is_user=seq % 2 == 1) for seq in range(from_seq, from_seq + messages)]
    return History(rules, from_seq, sent, edges, uncounted)


# --- a full cut ---


@pytest.mark.parametrize(
    ("messages", "edges", "covered_seq", "decision"),
    [
        (8, [1, 3, 5, 7], None, Cut(5, "full", 4)),
        (8, [1, 3, 5, 7], 4, Cut(5, "full", 4)),
        (8, [1, 3, 5, 7], 3, AwaitCoverage(5)),
        (8, [1, 7], None, AwaitEdge(10)),
        (8, [1, 8], 0, AwaitEdge(11)),
        (8, [1], None, AwaitEdge()),
        (12, [1, 3, 9], 0, Cut(9, "forced", 4)),
        (12, [1], 0, Cut(9, "forced", 4)),
        (13, [1], 0, Cut(9, "forced", 5)),
        (12, [1, 3], None, Cut(3, "full", 10)),
    ],
)
def test_a_full_history_is_cut_or_waits(
    messages: int, edges: list[int], covered_seq: int | None, decision: object
) -> None:
    assert decide_full(history(messages, edges), covered_seq) == decision


def test_without_layer_edges_the_next_append_decides() -> None:
    assert decide_full(history(8, [1, 7], rules=FIXED_EDGES), None) == AwaitAppend()
    assert decide_full(history(8, [1, 5], rules=FIXED_EDGES), 0) == AwaitCoverage(5)


def test_an_overdue_history_without_any_place_to_cut_waits() -> None:
    sent = [Sent(1, calls=("call",)), *(Sent(seq) for seq in range(2, 12)), Sent(12, answers="call")]
    assert decide_full(History(RULES, 1, sent, [1, 5]), None) == AwaitEdge()
    assert decide_full(History(FIXED_EDGES, 1, sent, [1, 5]), None) == AwaitEdge()


def test_an_edge_inside_a_tool_call_is_not_waited_for() -> None:
    called = [Sent(4, calls=("call",)), Sent(5), Sent(6, answers="call")]
    sent = [Sent(1), Sent(2), Sent(3), *called, Sent(7), Sent(8)]
    assert decide_full(History(RULES, 1, sent, [1, 5]), None) == AwaitEdge()


@pytest.mark.parametrize(
    ("edges", "covered_seq", "rules", "decision"),
    [
        ([1, 5], 4, RULES, AwaitAppend()),
        ([1, 5], 3, RULES, AwaitCoverage(5)),
        ([1, 5], 3, FIXED_EDGES, AwaitCoverage(5)),
        ([1, 7], 3, RULES, AwaitEdge(10)),
        ([1, 7], 3, FIXED_EDGES, AwaitAppend()),
        ([1], 3, RULES, AwaitEdge()),
    ],
)
def test_after_a_change_a_cut_waits_for_what_is_there(
    edges: list[int], covered_seq: int, rules: CutRules, decision: object
) -> None:
    assert decide_wait(history(8, edges, rules=rules), covered_seq) == decision


# --- when an append decides ---


@pytest.mark.parametrize(
    ("messages", "waits", "recheck_messages", "due"),
    [
        (7, False, None, True),
        (7, True, None, False),
        (7, True, 8, False),
        (8, True, 8, True),
        (12, True, None, True),
    ],
)
def test_a_cut_that_waits_is_decided_again_only_in_time(
    messages: int, waits: bool, recheck_messages: int | None, due: bool
) -> None:
    assert is_decision_due(messages, RULES, CutCursor(recheck_messages), waits=waits) is due


@pytest.mark.parametrize(("messages", "full"), [(0, False), (5, False), (6, False), (7, True)])
def test_a_history_is_full_beyond_what_it_may_grow_by(messages: int, full: bool) -> None:
    assert is_full(messages, keep=4, grow=2) is full


SEQS = st.none() | st.integers(1, 10_000)


@given(SEQS, SEQS)
def test_a_cursor_is_read_as_it_was_stored(recheck_messages: int | None, session_seq: int | None) -> None:
    assert CutCursor(recheck_messages).to_json() == recheck_messages  # the form in which rows hold it
    cursor = CutCursor(recheck_messages, session_seq)
    assert CutCursor.from_json(cursor.to_json()) == cursor


# --- a session's cut ---


@pytest.mark.parametrize(
    ("messages", "uncounted", "covered_seq", "decision"),
    [
        (8, 0, None, Cut(5, "session", 4)),
        (8, 0, 4, Cut(5, "session", 4)),
        (8, 0, 3, AwaitCoverage(5)),
        (9, 2, None, Cut(3, "session", 7)),
        (9, 2, 1, AwaitCoverage(3)),
        (6, 1, None, None),
        (6, 0, None, Cut(3, "session", 4)),
    ],
)
def test_the_end_of_a_session_cuts_the_history_or_waits(
    messages: int, uncounted: int, covered_seq: int | None, decision: object
) -> None:
    assert decide_session(history(messages, [1, 3, 5, 7], uncounted=uncounted), covered_seq) == decision


def test_a_sessions_cut_separates_no_call_from_its_result() -> None:
    sent = [Sent(1), Sent(2), Sent(3), Sent(4, calls=("call",)), Sent(5, answers="call"), *map(Sent, range(6, 10))]
    assert decide_session(History(RULES, 1, sent, [1, 3, 5]), None) == Cut(3, "session", 7)


# --- a cold cut ---


@pytest.mark.parametrize(
    ("messages", "uncounted", "covered_seq", "decision"),
    [
        (8, 0, None, Cut(5, "cold", 4)),
        (8, 1, None, Cut(3, "cold", 6)),
        (8, 4, None, None),
        (8, 0, 4, Cut(5, "cold", 4)),
        (8, 0, 3, None),
    ],
)
def test_a_cold_cut_does_not_count_new_messages(
    messages: int, uncounted: int, covered_seq: int | None, decision: Cut | None
) -> None:
    assert decide_cold(history(messages, [1, 3, 5, 7], uncounted=uncounted), covered_seq) == decision


# --- back, and past what is hidden ---


@pytest.mark.parametrize(
    ("from_seq", "messages", "edges", "decision"),
    [
        (1, 10, [1, 3, 6, 9], Cut(6, "rewind", 5)),
        (5, 10, [1, 5, 11], Cut(11, "rewind", 4)),
        (5, 10, [1, 5, 12], None),
        (5, 10, [1], None),
        (1, 3, [1, 2], Cut(1, "rewind", 3)),
        (1, 0, [1], Cut(1, "rewind", 0)),
        (1, 20, [1], Cut(17, "forced", 4)),
        (1, 20, [1, 8], Cut(17, "forced", 4)),
        (1, 20, [1, 10], Cut(10, "rewind", 11)),
    ],
)
def test_the_anchor_goes_back_to_where_enough_is_left(
    from_seq: int, messages: int, edges: list[int], decision: Cut | None
) -> None:
    assert decide_rewind(history(messages, edges, from_seq=from_seq)) == decision


@pytest.mark.parametrize(
    ("at_seq", "last_cut_seq", "decision"),
    [
        (9, None, None),
        (9, 9, None),
        (9, 5, None),
        (9, 10, Cut(9, "rewind", 4)),
        (5, None, Cut(5, "rewind", 4)),
        (5, 5, Cut(5, "rewind", 4)),
        (12, None, Skip(12)),
        (12, 9, Skip(12)),
        (12, 13, Cut(12, "rewind", 4)),
    ],
)
def test_only_a_move_back_is_a_cut(at_seq: int, last_cut_seq: int | None, decision: object) -> None:
    assert decide_move(Cut(at_seq, "rewind", 4), 9, last_cut_seq) == decision


# --- whatever the history ---


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Any history: with gaps in the seqs, tool calls, any edges and any rules."""
    keep = draw(st.integers(1, 6))
    rules = CutRules(keep, keep + draw(st.integers(1, 12)), draw(st.booleans()))
    sent = []
    from_seq = seq = draw(st.integers(1, 5))
    for _ in range(draw(st.integers(0, 24))):
        role = draw(st.sampled_from(["user", "assistant", "call", "result"]))
        ids = st.sampled_from("01")
        calls = (draw(ids),) if role == "call" else ()
        sent.append(Sent(seq, is_user=role == "user", calls=calls, answers=draw(ids) if role == "result" else None))
        seq += draw(st.integers(1, 3))
    return History(rules, from_seq, sent, [1, *draw(st.lists(st.integers(1, 60), max_size=8))])


covered_seqs = st.none() | st.integers(0, 60)


@given(histories(), covered_seqs)
def test_a_full_cut_moves_forward_and_leaves_enough(found: History, covered_seq: int | None) -> None:
    cut = decide_full(found, covered_seq)
    if not isinstance(cut, Cut):
        return
    assert cut.at_seq > found.from_seq
    assert cut.left == count_from(found.sent, cut.at_seq) >= found.rules.keep_messages
    if cut.reason == "full":
        assert cut.at_seq in found.edges
        assert covered_seq is None or covered_seq >= cut.at_seq - 1
    else:
        assert cut.reason == "forced"
        assert len(found.sent) >= found.rules.max_messages


@given(histories(), covered_seqs)
def test_a_cut_waits_only_for_what_can_come(found: History, covered_seq: int | None) -> None:
    decision = decide_full(found, covered_seq)
    if isinstance(decision, AwaitCoverage):
        assert covered_seq is not None
        covered = decide_full(found, decision.target - 1)
        assert covered == Cut(decision.target, "full", count_from(found.sent, decision.target))
    if isinstance(decision, AwaitEdge):
        assert found.target is None
        assert found.rules.layers_add_edges or found.rules.is_overdue(len(found.sent))


@given(histories(), st.integers(1, 12))
def test_an_edge_leaves_enough_once_so_many_are_there(found: History, more: int) -> None:
    decision = decide_wait(found, None)
    if not isinstance(decision, AwaitEdge) or decision.recheck_messages is None:
        return
    next_edge = min(edge for edge in found.edges if edge > found.from_seq)
    last_seq = max([found.from_seq, next_edge, *(sent.seq + 1 for sent in found.sent)])
    grown = [*found.sent, *(Sent(last_seq + n) for n in range(more))]
    enough = count_from(grown, next_edge) >= found.rules.keep_messages
    assert enough is (len(grown) >= decision.recheck_messages)


@given(histories(), covered_seqs, st.integers(0, 6))
def test_a_cold_cut_leaves_enough_of_the_old_messages(found: History, covered_seq: int | None, fresh: int) -> None:
    old = found.sent[: max(len(found.sent) - fresh, 0)]
    cold = decide_cold(replace(found, uncounted=len(found.sent) - len(old)), covered_seq)
    target = find_target(found.edges, found.sent, found.rules.keep_messages + len(found.sent) - len(old))
    assert (cold is not None) is can_cut(target, covered_seq, found.from_seq)
    if cold is not None:
        assert cold == Cut(cold.at_seq, "cold", count_from(found.sent, cold.at_seq))
        assert cold.at_seq == target
        assert count_from(old, cold.at_seq) >= found.rules.keep_messages


@given(histories())
def test_a_rewind_leaves_enough_or_is_the_first_message(newest: History) -> None:
    cut = decide_rewind(newest)
    if cut is None:
        assert newest.from_seq > LINE_FIRST_SEQ
        return
    assert cut.left == count_from(newest.sent, cut.at_seq)
    assert cut.at_seq == LINE_FIRST_SEQ or cut.left >= newest.rules.keep_messages
    if cut.reason == "rewind":
        assert cut.at_seq in newest.edges


@given(st.integers(1, 40), st.integers(1, 40), st.none() | st.integers(1, 40))
def test_once_moved_the_anchor_stays(at_seq: int, anchor_seq: int, last_cut_seq: int | None) -> None:
    wanted = Cut(at_seq, "rewind", 4)
    match decide_move(wanted, anchor_seq, last_cut_seq):
        case Cut() as cut:
            assert cut == wanted
            assert decide_move(wanted, cut.at_seq, cut.at_seq) is None
        case Skip(seq):
            assert seq == at_seq > anchor_seq
            assert decide_move(wanted, seq, last_cut_seq) is None
        case None:
            assert at_seq == anchor_seq
