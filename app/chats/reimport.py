"""The verb of a re-import: make the chat be a given list of messages, touching only what differs.

What the list asks for is found out by `alignment`. In place, messages are edited, taken away, revived and appended.
Where some were inserted or reordered, a new line begins behind what both have in common; the messages that moved
bring along what people did to them, and the former line stays as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from app.chats import reimport_queries
from app.chats.access import ChatRef, lock_or_create
from app.chats.alignment import Standing, Wanted, align
from app.chats.change_queries import recounting_turns
from app.chats.editing import note
from app.chats.hashes import identity
from app.chats.head import Head, NewMessage, RangeMessage, advance
from app.chats.lines import begin_line, cut_copy
from app.chats.message_queries import insert_messages
from app.chats.message_schemas import MessageIn
from app.chats.messages import make_messages
from app.kit.db import DbSession, defer

_PLAIN = ("role", "name", "kind", "content", "tool_call_id", "importance", "sent_at")
_JSON = ("tool_calls", "metadata")


@dataclass(frozen=True, slots=True)
class Reimported:
    """What a re-import has changed, and the line that is current now."""

    added: int
    changed: int
    removed: int
    line_id: UUID


@dataclass(frozen=True, slots=True)
class _Match:
    """A wanted message, with what the caller left open as it stands; and the row that it is, None if it is new."""

    wanted: NewMessage
    row: asyncpg.Record | None

    @property
    def is_added(self) -> bool:
        """Whether the chat does not have it, or no longer."""
        return self.row is None or bool(self.row["deleted"])

    @property
    def differs(self) -> bool:
        """Whether it is to be other than it stands."""
        row, wanted = self.row, self.wanted
        return row is not None and (
            any(row[name] != getattr(wanted, name) for name in _PLAIN)
            or any(_read(row[name]) != _read(getattr(wanted, name)) for name in _JSON)
        )


async def put_messages(db_session: DbSession, ref: ChatRef, given: Sequence[MessageIn], *, now: datetime) -> Reimported:
    """Make the chat's messages be `given`, in order; creates the chat if it is missing.

    Where messages were inserted or reordered a new line becomes the current one. Raises ChatNotFound.
    """
    made = await make_messages(given, now)
    head, created = await lock_or_create(db_session, ref, now)
    rows = await reimport_queries.list_standing(db_session, head)
    alignment = align(
        [Standing(r["seq"], r["message_id"], r["role"], r["name"], r["content"], r["deleted"]) for r in rows],
        [Wanted(message.id, message.role, message.name, message.content) for message in given],
    )
    by_seq = {row["seq"]: row for row in rows}
    matches = [
        _match(wanted, message, None if seq is None else by_seq[seq])
        for wanted, message, seq in zip(given, made, alignment.matches, strict=True)
    ]
    removed = [by_seq[seq] for seq in alignment.removed]
    outcome = Reimported(
        added=sum(match.is_added for match in matches),
        changed=sum(match.differs and not match.is_added for match in matches),
        removed=len(removed),
        line_id=head.line_id,
    )
    if alignment.diverges_at is None:
        await _change(db_session, head, matches, removed, now)
        fresh = await _append(db_session, head, [match.wanted for match in matches if match.row is None])
        if outcome.added:
            defer(db_session, "line_advanced", advance(head, fresh, now=now, created=created))
        return outcome
    kept, moved = matches[: alignment.diverges_at], matches[alignment.diverges_at :]
    kept_seq = max((match.wanted.seq for match in kept), default=0)
    line_id = await begin_line(db_session, head, head.line_id, until_seq=kept_seq, now=now)
    line = await cut_copy(db_session, (head.chat_key, line_id), kept_seq, now=now)
    await db_session.run_deferred()  # what was cut off is forgotten before anything else changes
    await _change(db_session, line, kept, [row for row in removed if row["seq"] <= kept_seq], now)
    fresh = await _move(db_session, line, moved, head.line_id, now)
    defer(db_session, "line_advanced", advance(line, fresh, now=now, created=False))
    return replace(outcome, line_id=line.line_id)


async def _change(
    db_session: DbSession, head: Head, matches: Sequence[_Match], removed: Sequence[asyncpg.Record], now: datetime
) -> None:
    """Take away and rewrite in place."""
    changed = [(match.wanted, match.row) for match in matches if match.row and (match.differs or match.is_added)]
    if not changed and not removed:
        return
    async with recounting_turns(db_session, head, 1, head.head_seq):
        if removed:
            await reimport_queries.bury(db_session, head, [row["seq"] for row in removed], now)
        if changed:
            await reimport_queries.rewrite(db_session, head, [wanted for wanted, _ in changed], now)
    gone = [(before, before._replace(deleted=True)) for before in map(_as_range, removed)]
    rewritten = [(_as_range(row), _as_range_wanted(wanted)) for wanted, row in changed]
    note(db_session, head, sorted([*gone, *rewritten]), now)


async def _append(db_session: DbSession, head: Head, messages: Sequence[NewMessage]) -> list[NewMessage]:
    """Append messages whose ids are new on the line; returns them with their places."""
    if not messages:
        return []
    seqs = {row["message_id"]: row["seq"] for row in await insert_messages(db_session, head, messages)}
    return [replace(message, seq=seqs[message.message_id]) for message in messages]


async def _move(
    db_session: DbSession, head: Head, matches: Sequence[_Match], from_line_id: UUID, now: datetime
) -> list[NewMessage]:
    """Append what is new or has moved, with all that belongs to it; returns it as it stands then.

    What has moved is appended as it stood and rewritten then, so that what it said is kept.
    """
    after_seq = head.head_seq
    placed = await _append(db_session, head, [_as_stood(match.row) if match.row else match.wanted for match in matches])
    marks = await reimport_queries.bring_along(db_session, head, from_line_id, after_seq)
    fresh = [replace(match.wanted, seq=place.seq) for match, place in zip(matches, placed, strict=True)]
    differing = [message for message, match in zip(fresh, matches, strict=True) if match.differs]
    if differing:
        await reimport_queries.rewrite(db_session, head, differing, now)
    return [
        replace(message, excluded=marks[message.seq][0], hidden_by=marks[message.seq][1])
        if message.seq in marks
        else message
        for message in fresh
    ]


def _match(given: MessageIn, made: NewMessage, row: asyncpg.Record | None) -> _Match:
    if row is None:
        return _Match(made, None)
    wanted = replace(
        made,
        seq=row["seq"],
        message_id=row["message_id"],
        sent_at=given.sent_at or row["sent_at"],
        importance=row["importance"] if given.importance is None else given.importance,
        metadata=row["metadata"] if given.metadata is None else made.metadata,
        excluded=row["excluded"],
        hidden_by=row["hidden_by"],
    )
    return _Match(wanted, row)


def _as_stood(row: asyncpg.Record) -> NewMessage:
    return NewMessage(
        message_id=row["message_id"],
        role=row["role"],
        name=row["name"],
        kind=row["kind"],
        content=row["content"],
        tokens=row["tokens"],
        blank=row["blank"],
        importance=row["importance"],
        tool_calls=row["tool_calls"],
        tool_call_id=row["tool_call_id"],
        metadata=row["metadata"],
        sent_at=row["sent_at"],
        identity=identity(row["role"], row["content"]),
        digest=row["digest"],
    )


def _as_range(row: asyncpg.Record) -> RangeMessage:
    return RangeMessage(*(row[name] for name in RangeMessage._fields))


def _as_range_wanted(wanted: NewMessage) -> RangeMessage:
    return RangeMessage(*(getattr(wanted, name) for name in RangeMessage._fields))


def _read(json: str | None) -> Any:
    return None if json is None else orjson.loads(json)
