"""The job that schedules ranges that a person wants to be read again, some at a time.

The job calls no model, and does not wait until the ranges are read. Its work item holds the spans of seqs whose ranges
are still to be scheduled (`regeneration.py`). Each run schedules the next ranges and, if spans are left, the next such
item, in one transaction. If learning is switched off, the item is deleted (`changes.py`).
"""

from app.chats.ranges import Range
from app.consolidation.regeneration import REST, read_spans, schedule_again
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.job import Job, Made


async def _read(_ctx: JobContext, _db_session: DbSession, claimed: Claimed) -> list[Range] | None:
    """Return the spans that are still to be scheduled, or None if there are none."""
    return read_spans(claimed.payload) or None


async def _draft(_ctx: JobContext, _claimed: Claimed, spans: list[Range]) -> list[Range]:
    """Return the spans. `_save` looks up the ranges in them, while it holds the line's lock."""
    return spans


async def _save(db_session: DbSession, made: Made[list[Range], list[Range]]) -> None:
    await schedule_again(db_session, made.head, made.draft, now=made.now)


SCHEDULE_AGAIN = Job(prefix=REST, read=_read, draft=_draft, save=_save)
