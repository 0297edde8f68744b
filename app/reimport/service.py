"""Re-import: replaces a chat's messages with a given list, changing only what differs.

`diff` matches the list with the line. In place, messages are edited, deleted, restored and appended. If the new text
of a message is one of its swipes, that swipe is selected, and the text is not edited. If messages were inserted or
reordered, a new line begins with the part that the list and the line have in common. Messages that moved keep their
marks (such as pins), swipes and revisions, and the texts that people wrote about them are copied to the new line. The
former line does not change.

The handlers of events run in this order. On a new line, memories of the removed end are dropped first, before the
other changes are made. At the end, memories of changed messages are marked as stale, then the appended messages fill
batches. By then, the head (the line's row) includes all changes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from app.chats.chat_lock import ChatRef, lock_or_create
from app.chats.events import MessagesMoved, count_appended
from app.chats.head import Head, NewMessage, RangeMessage
from app.chats.revision import MESSAGES, record, record_nothing
from app.kit.db import DbSession, defer
from app.lines.limits import LineLimits
from app.lines.service import replace_line, truncate_copy
from app.messages.change_queries import list_swipes, recounting_turns
from app.messages.echoes import without_echo
from app.messages.editing import note_texts, record_changes
from app.messages.queries import insert_given_swipes, insert_messages, insert_swipes
from app.messages.schemas import MessageIn
from app.messages.service import make_messages
from app.messages.swipes import check_swipes
from app.reimport import queries as reimport_queries
from app.reimport.plan import Match, Plan, choose_swipes, make_plan
from app.reimport.swipe_choice import SwipeChoice

_MANY_MESSAGES = 1_000
"""Matching this many messages takes about 10 ms; from this number on, it is done in a thread."""


@dataclass(frozen=True, slots=True)
class Reimported:
    """The result of a re-import, and the line that is current now."""

    added: int
    changed: int
    removed: int
    line_id: UUID


async def put_messages(
    db_session: DbSession, ref: ChatRef, given: Sequence[MessageIn], *, limits: LineLimits, now: datetime
) -> Reimported:
    """Replace the chat's messages with `given`, in order; create the chat if it is missing.

    If messages were inserted or reordered, a new line becomes the current one. Raises ChatNotFound, TooManySwipes,
    TooManyLines.
    """
    made = await make_messages(given, now)
    head, created = await lock_or_create(db_session, ref, now)
    made = [without_echo(head, head.with_current_name(message)) for message in made]
    rows = await reimport_queries.list_existing(db_session, head)
    if len(rows) + len(given) < _MANY_MESSAGES:
        plan = make_plan(head, rows, given, made)
    else:
        plan = await asyncio.to_thread(make_plan, head, rows, given, made)
    if seqs := [match.row["seq"] for match in plan.matches if match.row and match.may_change_swipes]:
        plan = choose_swipes(plan, await list_swipes(db_session, *head.line, seqs))
    for match in plan.matches:
        if match.swipe and match.swipe.added:
            check_swipes(match.wanted.message_id, match.swipe.added[-1][0])
    if plan.is_in_place:
        await _change(db_session, head, plan.matches, plan.removed, now)
        note_texts(db_session, head, plan.new_texts, now)
        fresh = await _append(db_session, head, [match.wanted for match in plan.matches if match.row is None])
        if not (fresh or plan.removed or any(match.differs or match.is_added for match in plan.matches)):
            record_nothing(db_session, head.line)
        if fresh:
            defer(db_session, count_appended(head, fresh, now=now, settle_s=db_session.settle_s, created=created))
        line_id = head.line_id
    else:
        line_id = await replace_line(db_session, head, until_seq=plan.kept_seq, limits=limits, now=now)
        await _build_on_new_line(db_session, head, line_id, plan, now)
    return Reimported(
        added=sum(match.is_added for match in plan.matches),
        changed=sum(match.differs and not match.is_added for match in plan.matches),
        removed=len(plan.removed),
        line_id=line_id,
    )


async def _build_on_new_line(db_session: DbSession, former: Head, line_id: UUID, plan: Plan, now: datetime) -> None:
    """Build the wanted list on the new line, on which only the first messages keep their seqs."""
    head = await truncate_copy(db_session, former.line, (former.chat_key, line_id), plan.kept_seq, now=now)
    await db_session.run_deferred()  # drops what was derived from the removed end, before the other changes are made
    await _change(db_session, head, plan.kept, [row for row in plan.removed if row["seq"] <= plan.kept_seq], now)
    fresh = await _move(db_session, head, plan.moved, former.line_id, now)
    note_texts(db_session, head, plan.new_texts, now)
    moved = frozenset(one.seq for one, match in zip(fresh, plan.moved, strict=True) if not match.is_added)
    event = count_appended(head, fresh, now=now, settle_s=db_session.settle_s, created=False, moved=moved)
    defer(db_session, event)


async def _change(
    db_session: DbSession, head: Head, matches: Sequence[Match], removed: Sequence[asyncpg.Record], now: datetime
) -> None:
    """Soft-delete and rewrite messages in place."""
    changed = [(match.wanted, match.row) for match in matches if match.row and (match.differs or match.is_added)]
    if not changed and not removed:
        return
    record(db_session, head.line, MESSAGES)
    async with recounting_turns(db_session, head, 1, head.head_seq):
        if removed:
            await reimport_queries.soft_delete(db_session, head, [row["seq"] for row in removed], now)
        await _change_swipes(db_session, head, [(match.wanted.seq, match.swipe) for match in matches if match.swipe])
        if changed:
            await reimport_queries.rewrite(db_session, head, [wanted for wanted, _ in changed], now)
    gone = [(before, before._replace(deleted=True)) for before in map(_as_range, removed)]
    rewritten = [(_as_range(row), _as_range_wanted(wanted)) for wanted, row in changed]
    redated = frozenset(wanted.seq for wanted, row in changed if wanted.sent_at != row["sent_at"])
    relinked = any(match.is_relinked for match in matches)
    record_changes(db_session, head, sorted([*gone, *rewritten]), now, redated=redated, relinked=relinked)


async def _append(db_session: DbSession, head: Head, messages: Sequence[NewMessage]) -> list[NewMessage]:
    """Append messages whose ids are new on the line; return them with their seqs."""
    if not messages:
        return []
    seqs = {row["message_id"]: row["seq"] for row in await insert_messages(db_session, head, messages)}
    appended = [message._replace(seq=seqs[message.message_id]) for message in messages]
    await insert_given_swipes(db_session, head, appended)
    return appended


async def _change_swipes(db_session: DbSession, head: Head, changes: Sequence[tuple[int, SwipeChoice]]) -> None:
    """Add and select swipes of messages, given by their seqs."""
    await insert_swipes(db_session, head, [(seq, *added) for seq, swipe in changes for added in swipe.added])
    await reimport_queries.select_swipes(db_session, head, [(seq, swipe.selected) for seq, swipe in changes])


async def _move(
    db_session: DbSession, head: Head, matches: Sequence[Match], from_line_id: UUID, now: datetime
) -> list[NewMessage]:
    """Append the new and the moved messages with everything that belongs to them; return them in their final state.

    A moved message is appended with its former text and then rewritten, so that the former text becomes a revision.
    """
    appended = await _append(db_session, head, [match.former or match.wanted for match in matches])
    moved = [(match.row["seq"], message.seq) for match, message in zip(matches, appended, strict=True) if match.row]
    await reimport_queries.bring_along(db_session, head, from_line_id, moved)
    fresh = [match.wanted._replace(seq=message.seq) for match, message in zip(matches, appended, strict=True)]
    swipes = [(message.seq, match.swipe) for message, match in zip(fresh, matches, strict=True) if match.swipe]
    await _change_swipes(db_session, head, swipes)
    differing = [message for message, match in zip(fresh, matches, strict=True) if match.differs]
    if differing:
        await reimport_queries.rewrite(db_session, head, differing, now)
    event = MessagesMoved(
        head=head,
        now=now,
        settle_s=db_session.settle_s,
        from_line_id=from_line_id,
        kept_seq=head.head_seq,
        seqs=sorted(moved),
    )
    defer(db_session, event)
    return fresh


def _as_range(row: asyncpg.Record) -> RangeMessage:
    return RangeMessage(*(row[name] for name in RangeMessage._fields))


def _as_range_wanted(wanted: NewMessage) -> RangeMessage:
    return RangeMessage(*(getattr(wanted, name) for name in RangeMessage._fields))
