"""How far a line is in the index."""

from hypothesis import given
from hypothesis import strategies as st

from app.chats.eligibility import Filters
from app.chats.head import Head
from app.chats.settings import effective
from app.kit.ids import uuid7
from app.passages.progress import EVERY_MESSAGES, MAX_CHANGED, Progress
from tests.conftest import NOON

SEQS = st.integers(1, 300)


@given(st.lists(SEQS, max_size=120), st.integers(0, 300), st.integers(0, 300))
def test_an_edited_message_never_counts_as_indexed(edited: list[int], seq: int, head_seq: int) -> None:
    progress = Progress(seq)
    for one in edited:
        progress = progress.with_changed([one])
    assert all(one > progress.seq or one in progress.changed for one in edited)
    assert len(progress.changed) <= MAX_CHANGED
    copy = progress.shortened(head_seq)
    assert copy.seq <= head_seq
    assert all(one > copy.seq or one in copy.changed for one in edited if one <= head_seq)


def test_many_changes_move_the_index_back() -> None:
    progress = Progress(200).with_changed(range(50, 50 + MAX_CHANGED + 1))
    assert progress == Progress(49, has_leftovers=True)


def test_the_index_is_due_when_enough_messages_wait() -> None:
    due = [seq for seq in range(1, 4 * EVERY_MESSAGES) if Progress(10).is_due(seq, seq - 1)]
    assert due == [10 + EVERY_MESSAGES, 10 + 2 * EVERY_MESSAGES, 10 + 3 * EVERY_MESSAGES]
    assert Progress(10).is_due(500, 0)


def test_a_cursor_of_another_chat_is_ignored() -> None:
    head = Head(uuid7(), uuid7(), "acme", effective({}), Filters(), last_active_at=NOON)
    progress = Progress(70, (3, 4), has_leftovers=True, analysis="2", remade=60)
    head.cursors["passages"] = progress.to_json(head.chat_key)
    assert Progress.of(head) == progress
    head.cursors["passages"] = progress.to_json(uuid7())
    assert Progress.of(head) == Progress()


def test_the_index_of_changed_messages_is_complete_again() -> None:
    assert Progress(70, (3, 4), has_leftovers=True).indexed(90, [3, 4]) == Progress(90)
    assert Progress(70, (3, 4)).indexed(70, [3]) == Progress(70, (4,))


def test_an_index_is_made_again_for_another_analysis() -> None:
    former = Progress(70, (3,))
    assert former.remade_from("2") == 0
    part = former.made_again(50, "2")
    assert (part.remade_from("2"), part.remade_from("3")) == (50, 0)
    assert part.made_again(70, "2") == Progress(70, (3,), analysis="2")
    assert part.made_again(70, "2").remade_from("2") is None
    assert Progress(70).indexed(90, [], "2").remade_from("2") is None
    assert Progress().remade_from("2") is None
