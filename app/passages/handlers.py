"""Decides when messages are put into the index of words, and notes which of them have to be put there again."""

from datetime import datetime

from app.chats.events import LineTruncated, MessagesAppended, MessagesChanged
from app.chats.head import Head
from app.chats.scheduling import schedule
from app.kit.db import DbSession
from app.kit.work_queue import NewWork
from app.passages.progress import NAME, Progress

INDEX = "index"
"""The key of the work item of a line."""

_CHANGED = 16
"""So many changed messages are put into the index without waiting for new ones."""


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Schedule the index each time that EVERY_MESSAGES more messages are not in it."""
    if Progress.of(event.head).is_due(event.head.head_seq, event.former_head_seq):
        await schedule_index(db_session, event.head, now=event.now, settle_s=event.settle_s)


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Note which texts changed."""
    head, former = event.head, Progress.of(event.head)
    progress = former.with_changed(after.seq for before, after in event.pairs if before.digest != after.digest)
    if progress == former:
        return
    head.cursors[NAME] = progress.to_json(head.chat_key)
    if progress.seq < former.seq or len(progress.changed) // _CHANGED > len(former.changed) // _CHANGED:
        await schedule_index(db_session, head, now=event.now, settle_s=event.settle_s)


async def on_truncate(_db_session: DbSession, event: LineTruncated) -> None:
    """Note where a shortened copy of a line ends. Messages that were cut off stay on the line, marked as deleted."""
    head = event.head
    if (progress := Progress.of(head)).seq > head.head_seq:
        head.cursors[NAME] = progress.shortened(head.head_seq).to_json(head.chat_key)


async def schedule_index(db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
    """Make the index of a line due."""
    await schedule(db_session, head, NAME, [NewWork(INDEX, head.head_seq)], now=now, settle_s=settle_s)
