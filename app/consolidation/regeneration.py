"""Schedules, at a person's request, the ranges that rules have read: the model is to read them, if there is one."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.revision import record_nothing
from app.chats.scheduling import get_scheduled, schedule
from app.consolidation import queries
from app.consolidation.errors import ConsolidationOff
from app.consolidation.handlers import NAME
from app.consolidation.ranges import key_of
from app.consolidation.settings import ConsolidationSettings
from app.kit.db import DbSession, defer
from app.kit.wire import MAX_SEQ
from app.kit.work_queue import NewWork

AGAIN = "again"
"""The field of a work item's payload: the range is read although its messages have not changed."""


class Again(NamedTuple):
    """The ranges that are read again, and the work item of the first; 0 and None if there are none."""

    ranges: int = 0
    first_seq: int | None = None
    last_seq: int | None = None
    work_id: UUID | None = None


async def learn_again(
    db_session: DbSession, ref: ChatRef, *, first_seq: int, last_seq: int | None, now: datetime
) -> Again:
    """Schedule the ranges that rules have read and that have a message between two seqs (both inclusive).

    If `last_seq` is None, the end is that of the line. Raises ChatNotFound, and ConsolidationOff if the chat does not
    learn.
    """
    head = await lock_head(db_session, ref)
    if not ConsolidationSettings.of(head.settings).enabled:
        raise ConsolidationOff("This chat does not learn; set consolidation.enabled to true.")
    until_seq = MAX_SEQ if last_seq is None else last_seq
    found = await queries.list_read_by_rule(db_session, head.line, first_seq, until_seq)
    if not found:
        record_nothing(db_session, head.line)
        return Again()
    items = [NewWork(key_of(row["first_seq"]), row["first_seq"], {AGAIN: True}) for row in found]
    await schedule(db_session, head, NAME, items, now=now, settle_s=0)
    defer(db_session, LayerChanged(head, NAME))
    work = await get_scheduled(db_session, head, NAME, items[0].key)
    return Again(len(found), found[0]["first_seq"], found[-1]["last_seq"], work.work_id)
