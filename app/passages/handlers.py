"""Schedules the index of words and the vectors, and records which indexed messages have changed since."""

from collections.abc import Sequence
from datetime import datetime

from app.chats.events import ChatForked, CurrentLineReplaced, LineTruncated, MessagesAppended, MessagesChanged
from app.chats.head import Head
from app.chats.heads import lock_current, lock_line
from app.chats.scheduling import schedule
from app.kit import work_queue
from app.kit.db import DbSession
from app.kit.owners import Owner, OwnerErased
from app.kit.work_queue import NewWork
from app.passages import queries, text_queries
from app.passages.keys import name_analysis
from app.passages.progress import NAME, VECTORS, Progress

INDEX = "index"
TEXTS = "texts"
GONE = "gone"
"""The keys of the work items. INDEX is for the index of words, TEXTS for the vectors of the layers' texts. GONE belongs
to a user or a tenant: after one of their chats was erased, it deletes the vectors in the other chats whose text no chat
has any more. The key for the vectors of messages is VECTORS.
"""

_CHANGED = 16
"""Each time that this many more messages have changed, the index is scheduled, even if no new message arrives."""


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Schedule the index and the vectors that an append makes due.

    The index is due each time that the number of messages which are not in it reaches another multiple of
    EVERY_MESSAGES.

    The vectors of the layers' texts are scheduled, too, because another chat may have added a text to the memory of the
    user. Such a text has no vector in this chat yet.
    """
    due = [VECTORS, TEXTS] if db_session.with_vectors else []
    if Progress.of(event.head).is_due(event.head.head_seq, event.former_head_seq):
        due.append(INDEX)
    await _schedule(db_session, event.head, due, now=event.now, settle_s=event.settle_s)


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Record which messages have another text now, and schedule the index and the vectors if they are due."""
    head, due = event.head, []
    seqs = [after.seq for before, after in event.pairs if before.digest != after.digest]
    for name, key, least in ((NAME, INDEX, _CHANGED), (VECTORS, VECTORS, 1)):
        former = Progress.of(head, name)
        progress = former.with_changed(seqs)
        if progress == former:
            continue
        head.cursors[name] = progress.to_json(head.chat_key)
        if progress.seq < former.seq or len(progress.changed) // least > len(former.changed) // least:
            due.append(key)
    due = [key for key in due if key == INDEX or db_session.with_vectors]
    await _schedule(db_session, head, due, now=event.now, settle_s=event.settle_s)


async def on_truncate(_db_session: DbSession, event: LineTruncated) -> None:
    """Limit the recorded progress of a shortened copy of a line to the end of the copy.

    If a line itself is cut off, this changes nothing: the messages stay on the line, marked as deleted.
    """
    head = event.head
    for name in (NAME, VECTORS):
        if (progress := Progress.of(head, name)).seq > head.head_seq:
            head.cursors[name] = progress.shortened(head.head_seq).to_json(head.chat_key)


async def on_fork(db_session: DbSession, event: ChatForked, *, now: datetime) -> None:
    """Copy the vectors of the fork's messages and of the layers' texts; schedule the index and missing vectors.

    The rows of the index cannot be copied, because their keys are hashed with the chat's key.
    """
    head = await lock_line(db_session, *event.target)
    if head is None:
        raise LookupError(f"the fork {event.target[1]} does not exist")
    if db_session.with_vectors:
        await queries.copy_vectors(db_session.raw, event.chat_key, head.line)
        await text_queries.copy(db_session.raw, event.chat_key, head.chat_key)
    await schedule_all(db_session, head, now=now)


async def on_texts_changed(db_session: DbSession, head: Head, *, now: datetime) -> None:
    """Schedule vectors for the layers' texts of the current line.

    The texts of another line get vectors when that line becomes the current one.
    """
    if db_session.with_vectors and head.is_current:
        await _schedule(db_session, head, [TEXTS], now=now, settle_s=db_session.settle_s)


async def on_line_replaced(db_session: DbSession, event: CurrentLineReplaced, *, now: datetime) -> None:
    """Schedule vectors for the layers' texts of the new current line, and its index if that must be made again.

    The index belongs to the chat, so a line with another language may have written other keys for the messages that
    both lines have (`forget_other_analyses`).
    """
    if not (db_session.with_vectors or await queries.has_index(db_session.raw, event.chat_key)):
        return
    if (head := await lock_current(db_session, event.chat_key)) is None:
        return
    await on_texts_changed(db_session, head, now=now)
    language = await queries.read_language(db_session.raw, head.line)
    if Progress.of(head).remade_from(name_analysis(language)) is not None:
        await schedule_next(db_session, head, INDEX, now=now)


async def erase_owner(db_session: DbSession, event: OwnerErased, *, now: datetime) -> None:
    """Schedule the deletion of the vectors that other chats have of texts which only the erased chat had contributed.

    Such a text was in the memory that all chats of the user or the tenant share, so each of these chats can have a
    vector of it. The deletion needs no embedding model, so it is scheduled even if none is configured.
    """
    owners = [Owner.of_tenant(event.tenant)]
    if event.user_id is not None:
        owners.append(Owner.of_user(event.tenant, event.user_id))
    for owner in owners:
        if owner.key in event.wide_keys and await text_queries.list_lines(db_session.raw, owner, limit=1):
            await work_queue.schedule(db_session, owner, NAME, [NewWork(GONE, 0)], now=now, settle_s=0)


async def schedule_all(db_session: DbSession, head: Head, *, now: datetime) -> None:
    """Schedule the index and the vectors of a line of a new chat, as an append of all of its messages would."""
    due = [TEXTS] if db_session.with_vectors else []
    if due and head.head_seq:
        due.append(VECTORS)
    if Progress().is_due(head.head_seq, 0):
        due.append(INDEX)
    await _schedule(db_session, head, due, now=now, settle_s=db_session.settle_s)


async def schedule_next(db_session: DbSession, head: Head, key: str, *, now: datetime) -> None:
    """Schedule the rest of the index, or of the vectors, without a delay."""
    await _schedule(db_session, head, [key], now=now, settle_s=0)


async def _schedule(db_session: DbSession, head: Head, keys: Sequence[str], *, now: datetime, settle_s: float) -> None:
    if keys:
        items = [NewWork(key, head.head_seq) for key in keys]
        await schedule(db_session, head, NAME, items, now=now, settle_s=settle_s)
