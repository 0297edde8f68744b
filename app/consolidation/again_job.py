"""The job that schedules the next ranges that a person asked to be read again.

It calls no model. Its item holds the spans of seqs that are left (`regeneration.py`), and each run schedules the next
ranges, and the next such item, in one transaction. It waits for no result of a range. If learning is switched off, the
item is deleted (`changes.py`).
"""

from app.chats.ranges import Range
from app.consolidation.regeneration import REST, read_spans, schedule_again
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.job import Job, Made


async def _read(_ctx: JobContext, _db_session: DbSession, claimed: Claimed) -> list[Range] | None:
    """Return the spans that are left, or None if there are none."""
    return read_spans(claimed.payload) or None


async def _draft(_ctx: JobContext, _claimed: Claimed, spans: list[Range]) -> list[Range]:
    """Return the spans: the ranges in them are read under the lock, when they are scheduled."""
    return spans


async def _save(db_session: DbSession, made: Made[list[Range], list[Range]]) -> None:
    await schedule_again(db_session, made.head, made.draft, now=made.now)


SCHEDULE_AGAIN = Job(prefix=REST, read=_read, draft=_draft, save=_save)
