from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chats.head import Sent
from app.history.cut import (
    Cut,
    CutRules,
    History,
    can_cut,
    decide_cold,
    decide_full,
    every_nth_edge,
    find_forced_target,
    find_target,
    is_full,
)

_keeps = st.integers(1, 6)
_edges = st.lists(st.integers(0, 30), max_size=8)


@st.composite
def histories(draw: st.DrawFn) -> list[Sent]:
    """What is sent: with gaps in the seqs, and calls that are answered late, twice, or never, by ids used again."""
    history = []
    seq = draw(st.integers(1, 4))
    for _ in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "assistant", "tool"]))
        ids = st.sampled_from("01")
        history.append(
            Sent(
                seq,
                is_user=kind == "user",
                calls=tuple(draw(st.lists(ids, max_size=2))) if kind == "assistant" else (),
                answers=draw(st.none() | ids) if kind == "tool" else None,
            )
        )
        seq += draw(st.integers(1, 3))
    return history


def _parts_a_call(history: Sequence[Sent], edge: int) -> bool:
    for place, result in enumerate(history):
        for sent in reversed(history[:place] if result.answers else ()):
            if result.answers in sent.calls:
                if sent.seq < edge <= result.seq:
                    return True
                break
            if sent.answers == result.answers:  # this one was the call's result
                break
    return False


def _newest(edges: Sequence[int], history: Sequence[Sent], keep: int) -> int | None:
    """The slow and obvious target."""
    for edge in sorted(edges, reverse=True):
        left = [sent for sent in history if sent.seq >= edge]
        if len(left) >= keep and not _parts_a_call(history, edge):
            return edge
    return None


@given(_edges, histories(), _keeps)
def test_the_target_is_the_newest_edge_that_allows_a_cut(edges: list[int], history: list[Sent], keep: int) -> None:
    assert find_target(edges, history, keep) == _newest(edges, history, keep)


class Counted(int):
    """A seq that counts how often any is compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        type(self).comparisons += 1
        return int(self) < other

    def __le__(self, other: int) -> bool:
        type(self).comparisons += 1
        return int(self) <= other

    def __gt__(self, other: int) -> bool:
        type(self).comparisons += 1
        return int(self) > other

    def __ge__(self, other: int) -> bool:
        type(self).comparisons += 1
        return int(self) >= other


def test_a_history_of_many_calls_is_scanned_once() -> None:
    history = [
        Sent(2 * n + place, calls=(str(n),) if place else (), answers=None if place else str(n - 1))
        for n in range(1_000)
        for place in (0, 1)
    ]
    assert find_target(map(Counted, range(1, 2_000)), history, keep=10) == 1_989
    assert 0 < Counted.comparisons < 2_000 * 20


@given(_edges, histories(), _keeps, st.integers(0, 20))
def test_a_forced_cut_prefers_the_target_then_a_user_message(
    edges: list[int], history: list[Sent], keep: int, anchor_seq: int
) -> None:
    ahead = [sent for sent in history if sent.seq > anchor_seq]
    target = _newest(edges, history, keep)
    choices = [
        target if target is not None and target > anchor_seq else None,
        _newest([sent.seq for sent in ahead if sent.is_user], history, keep),
        _newest([sent.seq for sent in ahead], history, keep),
    ]
    expected = next((choice for choice in choices if choice is not None), None)
    assert find_forced_target(edges, history, keep, anchor_seq) == expected


@given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 9))
def test_every_nth_edge_is_one_above_a_multiple(first_seq: int, last_seq: int, n: int) -> None:
    expected = [seq for seq in range(first_seq, last_seq + 1) if (seq - 1) % n == 0]
    assert list(every_nth_edge(first_seq, last_seq, n)) == expected


@pytest.mark.parametrize(
    ("target", "covered_seq", "possible"),
    [
        (None, None, False),
        (9, None, True),
        (9, 8, True),
        (9, 40, True),
        (9, 7, False),
        (5, None, False),
        (4, 40, False),
    ],
)
def test_a_cut_moves_forward_over_what_is_covered(target: int | None, covered_seq: int | None, possible: bool) -> None:
    assert can_cut(target, covered_seq, anchor_seq=5) is possible


def test_a_result_belongs_to_the_nearest_call_with_its_id() -> None:
    call, result = {"calls": ("call_0",)}, {"answers": "call_0"}
    history = [Sent(1, True), Sent(2, **call), Sent(3, **result), Sent(4, True), Sent(5, **call), Sent(6, **result)]  # type: ignore[arg-type]
    assert [find_target([seq], history, 1) for seq in range(1, 7)] == [1, 2, None, 4, 5, None]


# --- A whole conversation, decided on as an append does it ------------------------------------------


@dataclass
class Talk:
    """A conversation in batches, whose memos are made when a test says so."""

    keep: int = 16
    grow: int = 16
    batch: int = 8
    anchor_seq: int = 1
    history: list[Sent] = field(default_factory=list)
    made: int = 0
    cuts: list[Cut] = field(default_factory=list)

    @property
    def sent(self) -> list[Sent]:
        return [sent for sent in self.history if sent.seq >= self.anchor_seq]

    @property
    def rules(self) -> CutRules:
        return CutRules(self.keep, self.keep + self.grow + max(32, self.batch), layers_add_edges=False)

    def make_memos(self, count: int = 1_000) -> None:
        self.made = min(self.made + count, len(self.history) // self.batch)

    def append(self, count: int = 1, *, cold: bool = False) -> None:
        if cold:
            self._cut(decide_cold(self._read(), self._covered_seq))
        first = len(self.history) + 1
        self.history += [Sent(seq, is_user=seq % 2 == 1) for seq in range(first, first + count)]
        self.settle()

    def settle(self) -> None:
        if is_full(len(self.sent), keep=self.keep, grow=self.grow):
            self._cut(decide_full(self._read(), self._covered_seq))

    @property
    def _covered_seq(self) -> int:
        return self.made * self.batch

    def _read(self) -> History:
        edges = [1, *range(1 + self.batch, len(self.history) + 2, self.batch)]
        return History(self.rules, self.anchor_seq, self.sent, edges)

    def _cut(self, decision: object) -> None:
        if isinstance(decision, Cut):
            self.cuts.append(decision)
            self.anchor_seq = decision.at_seq


@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_with_16_and_16_a_cut_comes_every_16_messages(step: int) -> None:
    talk = Talk()
    lengths = []
    for _ in range(0, 400, step):
        talk.append(step)
        talk.make_memos()
        if talk.cuts:
            lengths.append(len(talk.sent))
    assert [cut.at_seq for cut in talk.cuts] == list(range(17, talk.anchor_seq + 1, 16))
    assert {cut.reason for cut in talk.cuts} == {"full"}
    assert 17 <= min(lengths) <= max(lengths) <= 32


def test_a_cut_that_waits_comes_with_the_memo_it_waits_for() -> None:
    talk = Talk()
    talk.append(33)
    talk.make_memos(1)
    talk.settle()
    assert talk.cuts == []
    talk.make_memos(1)
    talk.settle()
    assert talk.cuts == [Cut(17, "full", 17)]


def test_without_memos_the_cut_is_forced_at_64_messages() -> None:
    talk = Talk()
    for _ in range(63):
        talk.append()
    assert talk.cuts == []
    talk.append()
    assert talk.cuts == [Cut(49, "forced", 16)]


def test_a_cold_cut_counts_before_the_first_new_message() -> None:
    talk = Talk()
    talk.append(24)
    talk.make_memos()
    talk.append(2, cold=True)
    assert talk.cuts == [Cut(9, "cold", 16)]
    assert len(talk.sent) == 18


def test_a_cold_cut_that_would_have_to_wait_is_dropped() -> None:
    talk = Talk()
    talk.append(24)
    talk.append(cold=True)
    talk.make_memos()
    talk.append()
    assert talk.cuts == []


_steps = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3), st.booleans()), max_size=40)


@given(st.integers(1, 20), st.integers(0, 20), st.integers(1, 12), _steps)
def test_the_anchor_only_goes_forward_and_leaves_enough(
    keep: int, grow: int, batch: int, steps: list[tuple[int, int, bool]]
) -> None:
    talk = Talk(keep, grow, batch)
    for count, memos, cold in steps:
        talk.append(count, cold=cold)
        talk.make_memos(memos)
        assert len(talk.sent) >= min(keep, len(talk.history))
        assert len(talk.sent) < talk.rules.max_messages
    anchors = [1, *(cut.at_seq for cut in talk.cuts)]
    assert anchors == sorted(set(anchors))
    assert all(cut.left >= keep for cut in talk.cuts)
    assert all((cut.at_seq - 1) % batch == 0 for cut in talk.cuts if cut.reason != "forced")


@given(st.integers(1, 20), st.integers(0, 20), st.integers(1, 12))
def test_with_timely_memos_the_history_stays_within_its_limit(keep: int, grow: int, batch: int) -> None:
    talk = Talk(keep, grow, batch)
    for _ in range(100):
        talk.append()
        talk.make_memos()
        assert len(talk.sent) <= keep + max(grow, batch - 1)
    assert {cut.reason for cut in talk.cuts} == {"full"}


def test_only_the_first_result_of_a_call_stays_with_the_call() -> None:
    history = [Sent(1, calls=("call_0",)), *(Sent(seq, answers="call_0") for seq in range(2, 40))]
    assert find_target(range(1, 40), history, 16) == 24
    assert find_target([2], history, 16) is None
