"""Which messages are folded next, against the rules spelled out."""

from hypothesis import given
from hypothesis import strategies as st

from app.chats.cut import Sent
from app.summary.folding import MOST_MESSAGES, choose_range, reach


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


@given(uncovered(), st.integers(2, 30), st.integers(1, 25), st.integers(0, 120))
def test_a_fold_ends_before_the_history_or_leaves_what_it_is_to_keep(
    given_messages: tuple[int, list[Sent]], threshold: int, keep: int, until_seq: int
) -> None:
    covered, sent = given_messages
    found = choose_range(sent, covered, threshold=threshold, keep=keep, until_seq=until_seq)
    late = [one for one in sent if one.seq <= until_seq]
    if found is None:
        assert not late
        assert len(sent) <= max(threshold, keep)
        return
    first, last = found
    assert first == covered + 1
    folded = [one for one in sent if one.seq <= last]
    assert 0 < len(folded) <= MOST_MESSAGES
    if late:
        assert last <= until_seq
        assert last == until_seq or len(folded) == MOST_MESSAGES
    else:
        left = len(sent) - len(folded)
        assert len(sent) > threshold
        assert left >= keep
        assert left == keep or len(folded) == MOST_MESSAGES


@given(uncovered(), st.integers(2, 30), st.integers(1, 25), st.integers(0, 120))
def test_more_messages_than_are_read_change_nothing_of_the_beginning(
    given_messages: tuple[int, list[Sent]], threshold: int, keep: int, until_seq: int
) -> None:
    covered, sent = given_messages
    wanted = {"threshold": threshold, "keep": keep, "until_seq": until_seq}
    whole = choose_range(sent, covered, **wanted)
    read = choose_range(sent[: reach(threshold, keep)], covered, **wanted)
    assert read == whole or (read is not None and whole is not None and read[1] == whole[1])


@given(st.integers(1, 30), st.integers(0, 4))
def test_a_tool_call_keeps_its_result(at: int, between: int) -> None:
    sent = [Sent(seq) for seq in range(1, 41)]
    sent[at - 1] = Sent(at, calls=("call",))
    sent[at + between] = Sent(at + between + 1, answers="call")
    found = choose_range(sent, 0, threshold=20, keep=15, until_seq=0)
    assert found is None or not at <= found[1] < at + between + 1


def test_suzunes_numbers() -> None:
    sent = [Sent(seq) for seq in range(1, 21)]
    assert choose_range(sent, 0, threshold=20, keep=15, until_seq=0) is None
    sent.append(Sent(21))
    assert choose_range(sent, 0, threshold=20, keep=15, until_seq=0) == (1, 6)
