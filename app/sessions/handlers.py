"""Ends sessions in appends and by hand, and corrects the sessions of a line when its messages change.

The open session of a line is stored in the head's cursors (`open_session.py`), with the number of its turns.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from app.chats.events import (
    LineTruncated,
    MessagesAppended,
    MessagesChanged,
    MessagesMoved,
    SessionBroken,
    SessionReason,
)
from app.chats.head import Head, NewMessage
from app.chats.revision import record
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.layers.turns import can_alter_turns
from app.messages.range_reads import count_turns_between
from app.sessions import queries
from app.sessions.breaks import TurnRole, find_breaks, find_pause
from app.sessions.open_session import NAME, OpenSession
from app.sessions.queries import NewSession
from app.sessions.settings import SessionSettings


async def end_sessions(db_session: DbSession, event: MessagesAppended) -> Sequence[SessionBroken]:
    """End the open session, and sessions that begin in the append, as the settings say; return the ended sessions.

    Runs one statement if a session ends, otherwise none. Counting the turns of the open session again takes another.
    """
    head = event.head
    rules = SessionSettings.of(head.settings).rules(head.time_zone)
    fresh, awaits_reply = _split_moved(event)
    session = OpenSession.of(head)
    counts_turns = rules is not None and rules.max_turns is not None and bool(fresh)
    if not counts_turns and session.turns is not None:
        head.cursors[NAME] = replace(session, turns=None).to_json()
    paused = find_pause(rules, event.former_active_at, event.now) if rules and fresh else None
    if rules is None or not (counts_turns or paused):
        return ()
    has_messages = fresh[0].seq > session.first_seq
    turns = session.turns
    if (counts_turns and turns is None) or (paused and _may_lack_messages(head, session)):
        has_messages, turns = await count_turns_between(db_session, *head.line, session.first_seq, fresh[0].seq)
    breaks, turns = find_breaks(
        rules,
        [TurnRole(one.seq, one.role == "user", one.role == "assistant" and one.kind is None) for one in fresh],
        paused=paused,
        turns=turns or 0,
        awaits_reply=awaits_reply,
        has_messages=has_messages,
    )
    ended: Sequence[SessionBroken] = ()
    if breaks:
        ended = await _begin(db_session, head, session, breaks, now=event.now, settle_s=event.settle_s)
    if counts_turns:
        newest = OpenSession.of(head) if breaks else replace(session, lost_messages=False)
        head.cursors[NAME] = replace(newest, turns=turns).to_json()
    return ended


async def end_by_hand(db_session: DbSession, head: Head, *, now: datetime) -> SessionBroken | None:
    """End the open session of a locked line and return it. A session without messages stays open: return None."""
    session = OpenSession.of(head)
    has_messages = head.head_seq >= session.first_seq
    if has_messages and _may_lack_messages(head, session):
        has_messages = (await count_turns_between(db_session, *head.line, session.first_seq, head.head_seq + 1))[0]
    if not has_messages:
        return None
    breaks: list[tuple[int, SessionReason]] = [(head.head_seq + 1, "manual")]
    (ended,) = await _begin(db_session, head, session, breaks, now=now, settle_s=db_session.settle_s)
    head.cursors[NAME] = replace(OpenSession.of(head), turns=0).to_json()
    return ended


async def on_change(_db_session: DbSession, event: MessagesChanged) -> None:
    """If the change can alter the number of turns, mark the turns of the open session as not counted.

    A change in the session before the open one matters, too: a turn counts in the session of its reply, and the user's
    message that begins the turn can be in the session before.
    """
    head = event.head
    if NAME not in head.cursors or not any(can_alter_turns(*pair) for pair in event.pairs):
        return
    session = OpenSession.of(head)
    gone = [after.seq for before, after in event.pairs if before.deleted != after.deleted]
    lost_messages = session.lost_messages or max(gone, default=0) >= session.first_seq
    head.cursors[NAME] = replace(session, turns=None, lost_messages=lost_messages).to_json()


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Delete the sessions that begin in the removed end of the line; the last remaining session is open again."""
    head = event.head
    if NAME not in head.cursors:
        return
    session = OpenSession.of(head)
    if await queries.delete_from(db_session, head, event.from_seq):
        record(db_session, head.line, NAME, in_context=False)
    newest = await queries.find_newest(db_session, head)
    if newest is not None:
        session = OpenSession(newest["session_id"], newest["number"], newest["first_seq"])
    head.cursors[NAME] = replace(session, turns=None, lost_messages=True).to_json()


async def on_move(db_session: DbSession, event: MessagesMoved) -> None:
    """Copy the sessions of the line that a re-import replaced; each begins where its messages are on this line.

    Sessions that have no messages on this line are left out. New messages between two sessions belong to the later one.
    """
    head = event.head
    if NAME not in head.cursors:
        return
    session = OpenSession.of(head)
    rows = await queries.list_begun_after(db_session, head.chat_key, event.from_line_id, event.kept_seq)
    begins = [(event.seq_here(row["first_seq"] - 1) + 1, row) for row in rows]
    ends = [*(first_seq for first_seq, _ in begins[1:]), head.head_seq + 2]
    # If several sessions would begin at the same message, only the last one has messages here. If messages were
    # reordered, sessions that would begin before their predecessor are left out, because seqs must rise.
    new: list[NewSession] = []
    for (first_seq, row), following in zip(begins, ends, strict=False):
        if (new[-1].first_seq if new else session.first_seq) < first_seq < following:
            number = session.number + len(new) + 1
            new.append(NewSession(number, row["session_id"], first_seq, row["reason"], row["began_at"]))
    if new:
        await _insert(db_session, head, session, new)
        head.cursors[NAME] = replace(OpenSession.of(head), lost_messages=True).to_json()


def _may_lack_messages(head: Head, session: OpenSession) -> bool:
    """Return whether messages of the open session may have been deleted.

    Only a cursor stores this, so the answer without a cursor is True.
    """
    return session.lost_messages or NAME not in head.cursors


async def _begin(
    db_session: DbSession,
    head: Head,
    session: OpenSession,
    breaks: Sequence[tuple[int, SessionReason]],
    *,
    now: datetime,
    settle_s: float,
) -> list[SessionBroken]:
    """Begin sessions at the seqs of `breaks` after the open `session`, and return the sessions that end there."""
    new = [
        NewSession(number, uuid7(), first_seq, reason, now)
        for number, (first_seq, reason) in enumerate(breaks, start=session.number + 1)
    ]
    await _insert(db_session, head, session, new)
    before: list[OpenSession | NewSession] = [session, *new]
    return [
        SessionBroken(
            head=head,
            now=now,
            settle_s=settle_s,
            session_id=ended.session_id,
            number=ended.number,
            first_seq=ended.first_seq,
            last_seq=begun.first_seq - 1,
            reason=begun.reason,
        )
        for ended, begun in zip(before, new, strict=False)
    ]


async def _insert(db_session: DbSession, head: Head, session: OpenSession, new: Sequence[NewSession]) -> None:
    """Insert sessions that follow the open `session`. The last one is then open, and its turns are not counted yet."""
    first_id = session.session_id if session.number == 1 else None
    await queries.insert_sessions(db_session, head, new, first_id=first_id)
    record(db_session, head.line, NAME, in_context=False)
    head.cursors[NAME] = OpenSession(new[-1].session_id, new[-1].number, new[-1].first_seq).to_json()


def _split_moved(event: MessagesAppended) -> tuple[Sequence[NewMessage], bool]:
    """Return the new messages after all moved ones, and whether a user's message before them still awaits a reply."""
    last_moved = max(event.moved, default=0)
    awaits_reply = event.former_awaits_reply
    if not event.moved:
        return event.fresh, awaits_reply
    for message in event.fresh:
        if message.seq <= last_moved:
            is_reply = message.role == "assistant" and message.kind is None
            awaits_reply = message.role == "user" or (awaits_reply and not is_reply)
    return [message for message in event.fresh if message.seq > last_moved], awaits_reply
