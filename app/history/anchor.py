"""Moves the anchor: reads the data for a decision, asks the layers for their coverage, and changes the head.

`cut.py` makes the decisions, and explains the terms.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from app.chats.covering_layer import CoveringLayer, edges_in_effect
from app.chats.events import MessagesAppended
from app.chats.head import Head, Sent
from app.chats.settings import EVERY_8, EVERY_MESSAGE
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
    Wait,
    count_from,
    decide_cold,
    decide_full,
    decide_move,
    decide_rewind,
    decide_session,
    decide_wait,
    every_nth_edge,
    is_decision_due,
    is_full,
)
from app.kit.db import DbSession
from app.messages.calls import drop_unsent
from app.messages.reads import list_history_shape, list_newest_shape, skip_hidden_by_scenes

CURSOR = "cut"
"""The key of the CutCursor in the head's cursors."""


async def cut_after_append(
    db_session: DbSession,
    advance: MessagesAppended,
    layers: Sequence[CoveringLayer],
    *,
    session_seq: int | None = None,
) -> Cut | None:
    """Decide on a session's cut or a cold cut, then on a full or forced cut; return the last cut made, or None.

    The new messages do not count for a cold cut. `session_seq` is the seq of the new message that begins the newest
    session, or None if no new message begins a session. The messages from `session_seq` on do not count for the
    session's cut.
    """
    head = advance.head
    cut = None
    if session_seq is not None:
        cut = await cut_at_break(db_session, head, session_seq, layers, now=advance.now)
    elif advance.cold and advance.former_history_messages > head.settings.history.keep_messages:
        cut = await _cut_cold(db_session, advance, layers)
    if _is_full(head) and _is_decision_due(head, layers):
        cut = await _cut_full(db_session, head, layers, advance.now) or cut
    return cut


async def cut_if_settled(
    db_session: DbSession, head: Head, layers: Sequence[CoveringLayer], *, now: datetime
) -> Cut | None:
    """Decide again on a waiting full cut or session's cut, after `LayerChanged`; return the last cut, or None."""
    cut = None
    if head.cut_waits:
        head.cut_waits = False
        cut = await _cut_full(db_session, head, layers, now) if _is_full(head) else None
    session_seq = _cursor_of(head).session_seq  # also None if the full cut was made, which clears it
    if session_seq is not None:
        cut = await cut_at_break(db_session, head, session_seq, layers, now=now)
        if cut and _is_full(head):
            cut = await _cut_full(db_session, head, layers, now) or cut
    return cut


async def cut_at_break(
    db_session: DbSession, head: Head, session_seq: int, layers: Sequence[CoveringLayer], *, now: datetime
) -> Cut | None:
    """Cut the history because a session ended; return the cut, or None.

    The cut leaves all messages of the new session, which begins at `session_seq`, and at least `keep_messages` messages
    before them. If the layers do not cover the old messages yet, the missing work is scheduled, and the cut is decided
    on again at each `LayerChanged`. If a layer cannot make the coverage, the cut does not wait, and is not made.
    """
    decision = await _decide_session(db_session, head, session_seq, layers)
    match decision:
        case Cut():
            _move(head, decision, now)
            return decision
        case AwaitCoverage(target):
            waits = await _request_coverage(db_session, head, target, layers, now)
            _store_cursor(head, replace(_cursor_of(head), session_seq=session_seq if waits else None))
        case None:
            _store_cursor(head, replace(_cursor_of(head), session_seq=None))
    return None


def forget_break(head: Head, from_seq: int) -> None:
    """Drop a session's waiting cut if the next session began at or after `from_seq`, where the line was truncated."""
    cursor = _cursor_of(head)
    if cursor.session_seq is not None and cursor.session_seq >= from_seq:
        _store_cursor(head, replace(cursor, session_seq=None))


async def settle_anchor(
    db_session: DbSession, head: Head, layers: Sequence[CoveringLayer], *, by_scenes: bool = False, now: datetime
) -> Cut | Skip | None:
    """Correct the anchor after messages were removed, hidden or un-hidden; return how it moved.

    If too few messages are left after the anchor, the anchor moves back until enough are sent. It also moves forward
    past messages that scenes hide, so that the memories that cover these messages can enter the prompt. `by_scenes` is
    whether any of the changed messages was hidden by scenes before the change, or is hidden by scenes now.
    """
    wanted = Cut(head.anchor_seq, "rewind", head.history_messages)
    if wanted.left < head.settings.history.keep_messages and head.anchor_seq > LINE_FIRST_SEQ:
        wanted, begins_hidden = await _find_rewind(db_session, head, layers)
        by_scenes = by_scenes or begins_hidden
    if by_scenes:
        wanted = replace(wanted, at_seq=await _pass_hidden(db_session, head, layers, wanted.at_seq))
    move = decide_move(wanted, head.anchor_seq, head.last_cut["at_seq"] if head.last_cut else None)
    match move:
        case Cut() as cut:
            _move(head, cut, now)
        case Skip(at_seq):
            head.anchor_seq = at_seq
    return move


async def recheck_wait(db_session: DbSession, head: Head, layers: Sequence[CoveringLayer], *, now: datetime) -> None:
    """Decide again what a waiting full cut waits for, after messages that it depends on have changed."""
    if not head.cut_waits:
        return
    if not _is_full(head):
        _wait(head, waits=False)
        return
    history = await _read_history(db_session, head, layers)
    covered_seq = await _read_coverage(db_session, head, layers, history.target)
    await _await(db_session, head, decide_wait(history, covered_seq), layers, now)


async def _cut_cold(db_session: DbSession, advance: MessagesAppended, layers: Sequence[CoveringLayer]) -> Cut | None:
    head = advance.head
    history = await _read_history(db_session, head, layers)
    # The new messages do not count. They are read only because a cut must not separate a tool call from its result.
    history = replace(history, uncounted=count_from(history.sent, advance.former_head_seq + 1))
    cut = decide_cold(history, await _read_coverage(db_session, head, layers, history.target))
    if cut is not None:
        _move(head, cut, advance.now)
    return cut


async def _decide_session(
    db_session: DbSession, head: Head, session_seq: int, layers: Sequence[CoveringLayer]
) -> Cut | AwaitCoverage | None:
    if head.history_messages <= head.settings.history.keep_messages:
        return None
    history = await _read_history(db_session, head, layers)
    history = replace(history, uncounted=count_from(history.sent, session_seq))
    return decide_session(history, await _read_coverage(db_session, head, layers, history.target))


async def _cut_full(db_session: DbSession, head: Head, layers: Sequence[CoveringLayer], now: datetime) -> Cut | None:
    history = await _read_history(db_session, head, layers)
    decision = decide_full(history, await _read_coverage(db_session, head, layers, history.target))
    if isinstance(decision, Cut):
        if decision.reason == "forced" and await _are_edges_sought(db_session, head, layers, decision.at_seq, now):
            decision = AwaitEdge()
        else:
            _move(head, decision, now)
            left = history.after(decision)
            if left.rules.layers_add_edges and _is_full(head):  # still full; a later edge may allow another cut
                _wait(head, waits=True, recheck_messages=left.recheck_messages)
            return decision
    await _await(db_session, head, decision, layers, now)
    return None


async def _are_edges_sought(
    db_session: DbSession, head: Head, layers: Sequence[CoveringLayer], at_seq: int, now: datetime
) -> bool:
    """Return whether the layer that gives the chat's edges still searches for edges before `at_seq`."""
    edges = edges_in_effect(head.settings, layers)
    makers = [layer for layer in layers if layer.edges == edges]
    return any([await layer.seeks_edges(db_session, head, at_seq - 1, now=now) for layer in makers])


async def _find_rewind(db_session: DbSession, head: Head, layers: Sequence[CoveringLayer]) -> tuple[Cut, bool]:
    """Return the cut that moves the anchor back, and whether the message at the cut's seq is one that is not sent.

    Such a message is hidden, for example.
    """
    rules = _rules_of(head, layers)
    # The edge is usually near, so a long chat is read further back only while no edge is found.
    limit = 2 * rules.keep_messages + 32
    while True:
        newest = await list_newest_shape(db_session, *head.line, limit)
        from_seq = newest[0].seq if len(newest) == limit else LINE_FIRST_SEQ
        newest = drop_unsent(newest)
        edges = await _list_edges(db_session, head, newest, layers, from_seq)
        cut = decide_rewind(History(rules, from_seq, newest, edges))
        if cut is not None:
            return cut, all(sent.seq != cut.at_seq for sent in newest)
        limit *= 4


async def _pass_hidden(db_session: DbSession, head: Head, layers: Sequence[CoveringLayer], from_seq: int) -> int:
    """Return the newest edge after `from_seq` that the anchor reaches by passing only messages that scenes hide.

    Return `from_seq` if there is no such edge.
    """
    next_seq = await skip_hidden_by_scenes(db_session, head, from_seq)
    if next_seq is None:
        return from_seq
    edges = await _list_edges(db_session, head, [Sent(next_seq)], layers, from_seq)
    return max((edge for edge in edges if from_seq < edge <= next_seq), default=from_seq)


async def _await(
    db_session: DbSession, head: Head, decision: Wait, layers: Sequence[CoveringLayer], now: datetime
) -> None:
    """Store what a full cut waits for, and schedule missing coverage.

    If a layer cannot make the coverage, the cut does not wait: the next append decides again.
    """
    match decision:
        case AwaitCoverage(target):
            _wait(head, waits=await _request_coverage(db_session, head, target, layers, now))
        case AwaitEdge(recheck_messages):
            _wait(head, waits=True, recheck_messages=recheck_messages)
        case AwaitAppend():
            _wait(head, waits=False)


async def _request_coverage(
    db_session: DbSession, head: Head, target: int, layers: Sequence[CoveringLayer], now: datetime
) -> bool:
    """Schedule the coverage that a cut to `target` waits for; return False if a layer cannot make it."""
    return all([await layer.request_coverage(db_session, head, target - 1, now=now) for layer in layers])


def _is_full(head: Head) -> bool:
    history = head.settings.history
    return is_full(head.history_messages, keep=history.keep_messages, grow=history.grow_messages)


def _is_decision_due(head: Head, layers: Sequence[CoveringLayer]) -> bool:
    return is_decision_due(head.history_messages, _rules_of(head, layers), _cursor_of(head), waits=head.cut_waits)


def _rules_of(head: Head, layers: Sequence[CoveringLayer]) -> CutRules:
    history, edges = head.settings.history, edges_in_effect(head.settings, layers)
    return CutRules(
        keep_messages=history.keep_messages,
        max_messages=head.settings.max_messages,
        layers_add_edges=any(one.adds_edges_late for one in layers if one.edges == edges),
    )


async def _read_history(db_session: DbSession, head: Head, layers: Sequence[CoveringLayer]) -> History:
    """Return the messages that are sent from the anchor on, with the edges from there on."""
    sent = await list_history_shape(db_session, *head.line, head.anchor_seq)
    edges = await _list_edges(db_session, head, sent, layers, head.anchor_seq)
    return History(_rules_of(head, layers), head.anchor_seq, sent, edges)


async def _read_coverage(
    db_session: DbSession, head: Head, layers: Sequence[CoveringLayer], target: int | None
) -> int | None:
    """Return the last seq that every layer covers; it can be after `target`.

    None if no layer has to cover anything, or if there is no target.
    """
    if target is None:
        return None
    covered = [await layer.covered_through(db_session, head, head.anchor_seq, target - 1) for layer in layers]
    return min((seq for seq in covered if seq is not None), default=None)


async def _list_edges(
    db_session: DbSession, head: Head, sent: Sequence[Sent], layers: Sequence[CoveringLayer], from_seq: int
) -> list[int]:
    """Return the edges in effect from `from_seq` on, perhaps some before, and the line's first seq."""
    edges: Iterable[int]
    chosen = edges_in_effect(head.settings, layers)
    if chosen == EVERY_MESSAGE:
        edges = (one.seq for one in sent)
    elif chosen == EVERY_8:
        edges = every_nth_edge(from_seq, head.head_seq, 8)
    else:
        makers = [layer for layer in layers if layer.edges == chosen]
        edges = [edge for layer in makers for edge in await layer.list_edges(db_session, head, from_seq)]
    return [LINE_FIRST_SEQ, *edges]


def _move(head: Head, cut: Cut, now: datetime) -> None:
    head.anchor_seq = cut.at_seq
    head.history_messages = cut.left
    head.last_cut = {"at_seq": cut.at_seq, "reason": cut.reason, "at": now.isoformat()}
    head.cut_waits = False
    _store_cursor(head, CutCursor())


def _wait(head: Head, *, waits: bool, recheck_messages: int | None = None) -> None:
    """Store in the head whether a full cut waits, and its cursor."""
    head.cut_waits = waits
    _store_cursor(head, replace(_cursor_of(head), recheck_messages=recheck_messages))


def _cursor_of(head: Head) -> CutCursor:
    return CutCursor.from_json(head.cursors.get(CURSOR))


def _store_cursor(head: Head, cursor: CutCursor) -> None:
    stored = cursor.to_json()
    if stored is None:
        head.cursors.pop(CURSOR, None)
    else:
        head.cursors[CURSOR] = stored
