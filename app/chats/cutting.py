"""Moves the anchor: reads what the cut is judged by, asks the layers whether they are settled, changes the head."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from app.chats.cut import (
    Cut,
    Reason,
    Sent,
    count_from,
    every_nth_edge,
    find_forced_target,
    find_rewind_target,
    find_target,
    judge_whole,
)
from app.chats.head import Advance, Head
from app.chats.layers import Layer
from app.chats.message_queries import find_in_sight, list_history_shape, list_newest_shape
from app.kit.db import DbSession

LINE_FIRST_SEQ = 1

_JUDGE_AT = "cut"
"""In the head's cursors: with how many messages in the history an edge that is there already leaves enough of them."""


async def cut_after_append(db_session: DbSession, advance: Advance, layers: Sequence[Layer]) -> bool:
    """Judge a cold cut as before the new messages, then a full or forced one as after them; says if it cut."""
    head = advance.head
    cut = False
    if advance.cold and advance.former_history_messages > head.settings.history.keep_messages:
        cut = await _cut_cold(db_session, advance, layers)
    if _is_full(head) and (not head.cut_waits or _is_overdue(head) or _may_be_cut(head)):
        cut |= await _cut_full(db_session, head, layers, advance.now)
    return cut


async def cut_if_settled(db_session: DbSession, head: Head, layers: Sequence[Layer], *, now: datetime) -> bool:
    """Judge a full cut anew that waited for something which has settled now; says if it cut."""
    if not head.cut_waits:
        return False
    head.cut_waits = False
    return _is_full(head) and await _cut_full(db_session, head, layers, now)


async def settle_anchor(
    db_session: DbSession, head: Head, layers: Sequence[Layer], *, by_scenes: bool = False, now: datetime
) -> bool:
    """After messages were taken away, hidden or shown: bring the anchor to where it belongs; says if it moved.

    It goes back to where enough is left, and past what scenes hide in front of the first message that is in sight:
    nothing of that is sent, so what stands for it has its place in the prompt. `by_scenes` says that they hid or
    showed any.
    """
    back = Cut(head.anchor_seq, "rewind", head.history_messages)
    if back.left < head.settings.history.keep_messages and head.anchor_seq > LINE_FIRST_SEQ:
        back, first_seq = await _find_rewind(db_session, head, layers)
        by_scenes = by_scenes or first_seq > back.at_seq
    target = await _pass_hidden(db_session, head, layers, back.at_seq) if by_scenes else back.at_seq
    cut_behind = head.last_cut is not None and head.last_cut["at_seq"] > target  # a copy that ends before it
    if target < head.anchor_seq or cut_behind:
        _move(head, Cut(target, back.reason, back.left), now)
    elif target > head.anchor_seq:
        head.anchor_seq = target
    else:
        return False
    return True


async def _find_rewind(db_session: DbSession, head: Head, layers: Sequence[Layer]) -> tuple[Cut, int]:
    """Where the anchor goes back to because too few messages are left; and the first message that is sent then."""
    keep = head.settings.history.keep_messages
    # The edge is mostly near; a long chat is read further back only as long as none is found.
    reach = 2 * keep + 32
    while True:
        newest = await list_newest_shape(db_session, *head.line, reach)
        from_seq = newest[0].seq if len(newest) == reach else LINE_FIRST_SEQ
        edges = await _list_edges(db_session, head, newest, layers, from_seq)
        # A call just before what was read would not be seen.
        target = find_rewind_target([edge for edge in edges if edge > from_seq], newest, keep, LINE_FIRST_SEQ)
        if target > LINE_FIRST_SEQ or from_seq == LINE_FIRST_SEQ:
            break
        reach *= 4
    reason: Reason = "rewind"
    if count_from(newest, target) >= head.settings.max_messages:  # so much is cut again by force, at once
        forced = find_forced_target(edges, newest, keep, target)
        target, reason = (target, reason) if forced is None else (forced, "forced")
    first_seq = next((sent.seq for sent in newest if sent.seq >= target), head.head_seq + 1)
    return Cut(target, reason, count_from(newest, target)), first_seq


async def _pass_hidden(db_session: DbSession, head: Head, layers: Sequence[Layer], from_seq: int) -> int:
    """The newest edge with nothing but what scenes hide between it and `from_seq`; mostly that itself."""
    in_sight_seq = await find_in_sight(db_session, head, from_seq)
    if in_sight_seq is None:
        return from_seq
    edges = await _list_edges(db_session, head, [Sent(in_sight_seq)], layers, from_seq)
    return max((edge for edge in edges if from_seq < edge <= in_sight_seq), default=from_seq)


async def recheck_wait(db_session: DbSession, head: Head, layers: Sequence[Layer], *, now: datetime) -> None:
    """After a change: a full cut that waited for what is gone waits for what stands there now, else for an append."""
    if not head.cut_waits:
        return
    history = await list_history_shape(db_session, *head.line, head.anchor_seq)
    edges = await _list_edges(db_session, head, history, layers, head.anchor_seq)
    target = find_target(edges, history, head.settings.history.keep_messages)
    _note_next_edge(head, edges, history)
    if target is None or target <= head.anchor_seq:
        head.cut_waits = _is_full(head) and _waits_for_edge(head)
        return
    head.cut_waits = False
    if _is_full(head) and not await _is_whole(db_session, head, target, layers):
        await _wait(db_session, head, target, layers, now)


def _waits_for_edge(head: Head) -> bool:
    """Whether an edge may come with what settles, not only with what is appended."""
    return head.settings.history.edges in ("folds", "scenes")


def _note_next_edge(head: Head, edges: Iterable[int], history: Sequence[Sent]) -> None:
    """Remember when to judge anew where the next edge is there and only leaves too few messages yet."""
    head.cursors.pop(_JUDGE_AT, None)
    next_edge = min((edge for edge in edges if edge > head.anchor_seq), default=None)
    if next_edge is not None:
        missing = head.settings.history.keep_messages - count_from(history, next_edge)
        if missing > 0:
            head.cursors[_JUDGE_AT] = head.history_messages + missing


def _may_be_cut(head: Head) -> bool:
    judge_at = head.cursors.get(_JUDGE_AT)
    return judge_at is not None and head.history_messages >= judge_at


def _is_full(head: Head) -> bool:
    history = head.settings.history
    return head.history_messages > history.keep_messages + history.grow_messages


def _is_overdue(head: Head) -> bool:
    return head.history_messages >= head.settings.max_messages


async def _cut_cold(db_session: DbSession, advance: Advance, layers: Sequence[Layer]) -> bool:
    head = advance.head
    history = await list_history_shape(db_session, *head.line, head.anchor_seq)
    edges = await _list_edges(db_session, head, history, layers, head.anchor_seq)
    # What has just come counts for nothing here, but for this: a result keeps its call.
    fresh = count_from(history, advance.former_head_seq + 1)
    target = find_target(edges, history, head.settings.history.keep_messages + fresh)
    if target is None or not await _is_whole(db_session, head, target, layers):
        return False
    _move(head, Cut(target, "cold", count_from(history, target)), advance.now)
    return True


async def _cut_full(db_session: DbSession, head: Head, layers: Sequence[Layer], now: datetime) -> bool:
    keep = head.settings.history.keep_messages
    history = await list_history_shape(db_session, *head.line, head.anchor_seq)
    edges = await _list_edges(db_session, head, history, layers, head.anchor_seq)
    target = find_target(edges, history, keep)
    reason: Reason = "full"
    if target is None or not await _is_whole(db_session, head, target, layers):
        if not _is_overdue(head):
            # Nothing settles where no edge lies ahead: then the next append judges anew.
            head.cut_waits = _waits_for_edge(head)
            _note_next_edge(head, edges, history)
            if target is not None and target > head.anchor_seq:
                await _wait(db_session, head, target, layers, now)
            return False
        target, reason = find_forced_target(edges, history, keep, head.anchor_seq), "forced"
        if target is None or target <= head.anchor_seq:
            head.cut_waits = True
            return False
    _move(head, Cut(target, reason, count_from(history, target)), now)
    return True


async def _wait(db_session: DbSession, head: Head, target: int, layers: Sequence[Layer], now: datetime) -> None:
    """Leave the cut to what settles, and see to it that this is due; to the next append where it cannot settle."""
    prepared = [await layer.prepare(db_session, head, target - 1, now=now) for layer in layers]
    head.cut_waits = all(prepared)


async def _is_whole(db_session: DbSession, head: Head, target: int, layers: Sequence[Layer]) -> bool:
    """Whether every layer that stands for old text is settled up to the target."""
    if target <= head.anchor_seq:
        return False
    settled = [await layer.settled_seq(db_session, head, head.anchor_seq, target - 1) for layer in layers]
    return judge_whole(target, min((seq for seq in settled if seq is not None), default=None), head.anchor_seq)


async def _list_edges(
    db_session: DbSession, head: Head, history: Sequence[Sent], layers: Sequence[Layer], from_seq: int
) -> list[int]:
    """Where a cut may fall from `from_seq` on, by the chat's setting; the line's first seq always is one."""
    edges: Iterable[int] = (LINE_FIRST_SEQ,)
    if head.settings.history.edges == "every_message":
        edges = (LINE_FIRST_SEQ, *(sent.seq for sent in history))
    elif head.settings.history.edges == "every_8":
        edges = (LINE_FIRST_SEQ, *every_nth_edge(from_seq, head.head_seq, 8))
    else:
        edges = [LINE_FIRST_SEQ]
        for layer in layers:
            edges += await layer.list_edges(db_session, head, from_seq)
    return list(edges)


def _move(head: Head, cut: Cut, now: datetime) -> None:
    head.anchor_seq = cut.at_seq
    head.history_messages = cut.left
    head.last_cut = {"at_seq": cut.at_seq, "reason": cut.reason, "at": now.isoformat()}
    head.cut_waits = False
    head.cursors.pop(_JUDGE_AT, None)
