"""Operations on lines: create a checkpoint, restore it, switch to another line, delete a line, fork the chat.

A line is one course of a chat. A checkpoint, a restore and a fork copy a line with everything it holds
(`line_copy.py`). Each operation locks the chat's current line first and reads afterwards. So nothing is appended or
derived while the copy is written, and if two operations change which line is current, the second one finds the line
that the first one made current.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.errors import (
    ChatTaken,
    CheckpointNotFound,
    CheckpointTaken,
    LineIsCheckpoint,
    LineIsCurrent,
    LineNotFound,
    TooManyCheckpoints,
    TooManyLines,
    busy_if_locked,
)
from app.chats.events import ChatForked, CurrentLineReplaced, LineTruncated
from app.chats.head import Head
from app.chats.heads import lock_line
from app.chats.models import CURRENT
from app.chats.revision import LINE, begin_revision, record, record_nothing, register_new, revision_of
from app.chats.scheduling import owner_of
from app.chats.service import check_line_scopes, get_chat, narrow_scopes
from app.kit import work_queue
from app.kit.db import DbSession, defer
from app.kit.errors import Invalid
from app.kit.ids import uuid7
from app.kit.owners import Owner
from app.kit.work_queue import WorkScheduled
from app.lines import queries as line_queries
from app.lines.limits import LineLimits
from app.lines.line_copy import Line, copy_line
from app.lines.queries import LineRow

CHECKPOINT = "checkpoint"

MOST_PRUNED = 4
"""The maximum number of lines that one re-import deletes. A re-import adds one line, so at most one line has to be
deleted, unless the limit was lowered."""


async def make_checkpoint(
    db_session: DbSession, ref: ChatRef, name: str, *, limits: LineLimits, now: datetime
) -> LineRow:
    """Create a checkpoint of the current line and return it.

    Raises ChatNotFound, CheckpointTaken, TooManyCheckpoints.
    """
    head = await lock_head(db_session, ref)
    if await line_queries.find_checkpoint(db_session, ref.key, name):
        raise CheckpointTaken(
            f"The chat {ref.chat_id!r} already has a checkpoint {name!r}; delete it or choose another name.",
            errors=[{"loc": ["body", "name"], "msg": "is taken", "id": name}],
        )
    if await line_queries.count_lines(db_session, ref.key, checkpoints=True) >= limits.checkpoints:
        raise TooManyCheckpoints(
            f"The chat {ref.chat_id!r} already has {limits.checkpoints} checkpoints or more, the maximum. "
            "Delete one of them first."
        )
    values = {
        "line_status": CHECKPOINT,
        "checkpoint": name,
        "parent_line_id": head.line_id,
        "line_created_at": now,
    }
    record(db_session, head.line, LINE)
    source, target = (ref.key, head.line_id), (ref.key, uuid7())
    await copy_line(db_session, source, target, until_seq=None, chat_values=values)
    await work_queue.park(db_session, Owner.of_line(ref.tenant, *target))
    return await get_checkpoint(db_session, ref, name)


async def list_lines(
    db_session: DbSession, ref: ChatRef, *, checkpoints: bool, limit: int, before: tuple[datetime, UUID] | None
) -> Sequence[LineRow]:
    """Return a chat's checkpoints, or its other lines, by the time they were made, newest first.

    The caller has checked that the chat exists.
    """
    return await line_queries.list_lines(db_session, ref.key, checkpoints=checkpoints, limit=limit, before=before)


async def get_checkpoint(db_session: DbSession, ref: ChatRef, name: str) -> LineRow:
    """Return the checkpoint with this name. Raises CheckpointNotFound.

    The caller has checked that the chat exists.
    """
    checkpoint = await line_queries.find_checkpoint(db_session, ref.key, name)
    if checkpoint is None:
        raise CheckpointNotFound(f"The chat {ref.chat_id!r} has no checkpoint {name!r}.")
    return checkpoint


async def get_line(db_session: DbSession, ref: ChatRef, line_id: UUID) -> LineRow:
    """Return a line that is not a checkpoint. Raises LineNotFound.

    The caller has checked that the chat exists.
    """
    line = await line_queries.find_line(db_session, (ref.key, line_id))
    if line is None or line.checkpoint is not None:
        raise LineNotFound(f"The chat {ref.chat_id!r} has no line {str(line_id)!r}.")
    return line


async def restore(db_session: DbSession, ref: ChatRef, name: str, *, limits: LineLimits, now: datetime) -> UUID:
    """Copy a checkpoint to a new line, make this line current, and return its id.

    The copy has everything that the checkpoint holds, including the settings and the time of the last append. Raises
    ChatNotFound, CheckpointNotFound, TooManyLines, and Forbidden if these settings would change `memories.learn_scope`
    or `diary.scope` to a value that the caller may not choose.
    """
    head = await lock_head(db_session, ref)
    checkpoint = await get_checkpoint(db_session, ref, name)
    await check_line_scopes(db_session, ref, checkpoint.line_id)
    return await _begin_line(db_session, head, checkpoint.line_id, limits=limits, now=now)


async def replace_line(db_session: DbSession, head: Head, *, until_seq: int, limits: LineLimits, now: datetime) -> UUID:
    """Copy `head`'s line up to `until_seq` (inclusive; 0 copies no message), and make the copy the current line.

    Return the id of the copy; the caller has to call `truncate_copy` next. Of the replaceable lines (`ChatLine`) that
    re-imports have replaced, the newest `limits.replaced` are kept, and at most MOST_PRUNED older ones are deleted. If
    `head`'s line is replaceable, it already counts as one of the kept ones. Raises ChatBusy, TooManyLines.
    """
    replaced = await line_queries.list_replaced(db_session, head.chat_key)
    kept = limits.replaced - int(await line_queries.is_replaceable(db_session, head.line))
    for line_id in replaced[: max(len(replaced) - kept, 0)][:MOST_PRUNED]:
        await _delete_line(db_session, (head.chat_key, line_id))
    return await _begin_line(db_session, head, head.line_id, limits=limits, now=now, until_seq=until_seq)


async def _begin_line(
    db_session: DbSession,
    head: Head,
    source_line_id: UUID,
    *,
    limits: LineLimits,
    now: datetime,
    until_seq: int | None = None,
) -> UUID:
    """Abandon `head`'s line, which is current and locked, and make a copy of one of the chat's lines current.

    Return the new line's id. Only a re-import gives `until_seq`: the new line is then a copy of `head`'s line that ends
    at `until_seq`.
    """
    if await line_queries.count_lines(db_session, head.chat_key, checkpoints=False) >= limits.lines:
        raise TooManyLines(f"The chat already has {limits.lines} lines or more, the maximum. Delete one of them first.")
    line_id = uuid7()
    replaces = until_seq is not None
    values: dict[str, Any] = {"line_status": CURRENT, "checkpoint": None, "parent_line_id": source_line_id}
    values |= {"line_created_at": now, "replaceable": replaces}
    revision = revision_of(db_session, head.line).number
    # First, because a chat never has two current lines, not even within a transaction.
    await line_queries.abandon(db_session, head.line, replaced_at=now if replaces else None)
    await copy_line(
        db_session,
        (head.chat_key, source_line_id),
        (head.chat_key, line_id),
        until_seq=until_seq,
        chat_values=values | begin_revision(revision) | _shortened(head, until_seq),
    )
    register_new(db_session, (head.chat_key, line_id), revision)
    await _hand_over(db_session, head, line_id, now)
    return line_id


async def switch(db_session: DbSession, ref: ChatRef, line_id: UUID, *, now: datetime) -> None:
    """Make an abandoned line the current one; for the current line, this does nothing.

    Raises ChatNotFound, LineNotFound, ChatBusy, LineIsCheckpoint for a checkpoint's line, and Forbidden if the line's
    settings would change `memories.learn_scope` or `diary.scope` to a value that the caller may not choose.
    """
    head = await lock_head(db_session, ref)
    if line_id == head.line_id:
        record_nothing(db_session, head.line)
        return
    await _check_line(db_session, ref, line_id, "restore it instead")
    await check_line_scopes(db_session, ref, line_id)
    await line_queries.abandon(db_session, head.line)
    await line_queries.make_current(db_session, (ref.key, line_id), revision_of(db_session, head.line).number)
    await _hand_over(db_session, head, line_id, now)


async def delete_checkpoint(db_session: DbSession, ref: ChatRef, name: str) -> None:
    """Delete a checkpoint; lines that were restored from it are kept. Its rows are physically deleted.

    Raises ChatNotFound, CheckpointNotFound, ChatBusy.
    """
    head = await lock_head(db_session, ref)
    record(db_session, head.line, LINE)
    checkpoint = await get_checkpoint(db_session, ref, name)
    await _delete_line(db_session, (ref.key, checkpoint.line_id))


async def delete_line(db_session: DbSession, ref: ChatRef, line_id: UUID) -> None:
    """Delete a line that is not current; lines that were copied from it are kept. Its rows are physically deleted.

    Raises ChatNotFound, LineNotFound, LineIsCurrent, LineIsCheckpoint, ChatBusy.
    """
    head = await lock_head(db_session, ref)
    if line_id == head.line_id:
        raise LineIsCurrent(f"The line {str(line_id)!r} is the current one; switch to another line first.")
    await _check_line(db_session, ref, line_id, "delete it by its name instead")
    record(db_session, head.line, LINE)
    await _delete_line(db_session, (ref.key, line_id))


async def fork(db_session: DbSession, ref: ChatRef, target: ChatRef, at_seq: int | None, *, now: datetime) -> None:
    """Copy the current line into a new chat, up to `at_seq` (inclusive) or whole.

    The copy has the settings of the chat. But if the caller's token is limited, it has no scope that this caller may
    not choose: it would keep the scope after the original chat has lost it.

    Raises ChatNotFound, ChatTaken, ChatBusy, or Invalid if there is no message at `at_seq`.
    """
    head = await lock_head(db_session, ref)
    record_nothing(db_session, head.line)
    source = (ref.key, head.line_id)
    if at_seq is not None:
        await _check_seq(db_session, head, at_seq)
    values: dict[str, Any] = {
        "chat_id": target.chat_id,
        "parent_line_id": None,
        "line_created_at": now,
        "created_at": now,
        "last_active_at": now,
    }
    if target.is_limited:
        settings = (await get_chat(db_session, ref)).settings
        values["settings"] = orjson.dumps(narrow_scopes(target, settings)).decode()
    line_id = uuid7()
    try:
        with busy_if_locked():
            await copy_line(
                db_session,
                source,
                (target.key, line_id),
                until_seq=at_seq,
                chat_values=values | _shortened(head, at_seq),
            )
    except asyncpg.UniqueViolationError as error:
        # A check in advance would miss a chat that another transaction is creating; the insert waits for it.
        if error.constraint_name != "uq_chats_current":
            raise
        raise ChatTaken(
            f"There is already a chat {target.chat_id!r}; choose another chat_id.",
            errors=[{"loc": ["body", "chat_id"], "msg": "is taken", "id": target.chat_id}],
        ) from None
    await _lock_copy(db_session, (target.key, line_id))
    defer(db_session, WorkScheduled())
    defer(db_session, ChatForked(ref.key, (target.key, line_id)))
    if at_seq is not None:
        await truncate_copy(db_session, source, (target.key, line_id), at_seq, now=now)


async def truncate_copy(db_session: DbSession, source: Line, line: Line, until_seq: int, *, now: datetime) -> Head:
    """Count the messages, tokens and turns of a copy of `source` that ends at `until_seq`, and return its head.

    The deferred `LineTruncated` then makes the layers delete or reopen what extends beyond the end, such as batches,
    and moves the anchor back if too few messages are left after it.
    """
    head = await _lock_copy(db_session, line)
    await line_queries.recount(db_session, head)
    settle_s, from_seq = db_session.settle_s, until_seq + 1
    defer(db_session, LineTruncated(head=head, now=now, settle_s=settle_s, from_seq=from_seq, copied_from=source))
    return head


async def _lock_copy(db_session: DbSession, line: Line) -> Head:
    """Lock a copy that this transaction has made, and register it with the revision that its row already has.

    A copy in another chat begins with the time in milliseconds as its revision. So if a chat is erased and created
    again, it never gets a revision that it had before.
    """
    head = await lock_line(db_session, *line)
    if head is None:
        raise LookupError(f"the copy {line[1]} does not exist")
    if not revision_of(db_session, line).is_new:
        register_new(db_session, line, revision_of(db_session, line).number - 1)
    return head


async def _check_line(db_session: DbSession, ref: ChatRef, line_id: UUID, advice: str) -> None:
    """Raise LineNotFound if the chat has no such line, and LineIsCheckpoint with `advice` if it is a checkpoint's."""
    line = await line_queries.find_line(db_session, (ref.key, line_id))
    if line is None:
        raise LineNotFound(f"The chat {ref.chat_id!r} has no line {str(line_id)!r}.")
    if line.checkpoint is not None:
        raise LineIsCheckpoint(
            f"The line {str(line_id)!r} is the checkpoint {line.checkpoint!r}, which is frozen; {advice}."
        )


async def _delete_line(db_session: DbSession, line: Line) -> None:
    """Delete a line that is not current. Lines that were copied from it get its parent. Raises ChatBusy."""
    parent_line_id = await line_queries.lock_to_delete(db_session, line)
    await line_queries.update_parent(db_session, line[0], line[1], parent_line_id)
    await line_queries.delete_line(db_session, line)


async def _hand_over(db_session: DbSession, head: Head, line_id: UUID, now: datetime) -> None:
    """Park the work of `head`'s line and unpark the work of another line, which is the current one now."""
    await work_queue.park(db_session, owner_of(head))
    await work_queue.unpark(db_session, Owner.of_line(head.tenant, head.chat_key, line_id), now=now)
    defer(db_session, WorkScheduled())
    defer(db_session, CurrentLineReplaced(head.tenant, head.chat_key))


def _shortened(head: Head, until_seq: int | None) -> dict[str, Any]:
    """Return new values of the columns that could point beyond the end of a copy that ends at `until_seq`."""
    if until_seq is None:
        return {}
    shortened: dict[str, Any] = {"head_seq": until_seq, "anchor_seq": min(head.anchor_seq, until_seq + 1)}
    # If the copy has messages, an anchor beyond its end is moved back later, and that replaces the copied `last_cut`.
    # An empty copy keeps its anchor at 1, so its copied `last_cut`, which points beyond the end, is cleared here.
    return shortened if until_seq else shortened | {"last_cut": None}


async def _check_seq(db_session: DbSession, head: Head, at_seq: int) -> None:
    if at_seq > head.head_seq:
        message = f"must be at most the newest seq, {head.head_seq}" if head.head_seq else "the chat has no messages"
    elif not await line_queries.is_not_deleted(db_session, head.line, at_seq):
        message = "is the seq of a deleted message; give the seq of an existing one"
    else:
        return
    raise Invalid(f"at_seq: {message}", errors=[{"loc": ["body", "at_seq"], "msg": message}])
