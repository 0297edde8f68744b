"""The parts of a job that differ from kind to kind; `runner.py` has the parts that all jobs share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from app.chats.head import Head
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed

Source = TypeVar("Source")
Draft = TypeVar("Draft")


@dataclass(frozen=True, slots=True)
class Made(Generic[Source, Draft]):
    """The result of a job that is about to be saved.

    Attributes:
        locked: The line's head (the columns of its row that appends change), locked; None if the work item belongs to a
            user or a tenant.
        claimed: The work item.
        source: What `Job.read` returned; the draft was made from it.
        draft: What `Job.draft` returned.
        now: The service's time.

    """

    locked: Head | None
    claimed: Claimed
    source: Source
    draft: Draft
    now: datetime

    @property
    def head(self) -> Head:
        """The line's head. Raises LookupError if the work item belongs to a user or a tenant."""
        if self.locked is None:
            raise LookupError(f"the {self.claimed.layer} work {self.claimed.key!r} does not belong to a line")
        return self.locked


class LeftToOthers(Exception):
    """Only a worker of another release, or with other settings, can run the item. The message is one line."""


async def _never_changes(_db_session: DbSession, _made: Made[Any, Any]) -> bool | None:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[Source, Draft]):
    """One kind of job.

    Attributes:
        prefix: The prefix of the keys it runs; "" matches every key that no other job of the layer matches.
        read: Reads the source of the work item. If it returns None, the runner locks the line and calls it again. If
            the second call returns None, too, the item is completed without a draft. If the second call returns a
            source, or a call raises LeftToOthers, the item is due again, and its attempts are counted from zero.
        draft: Makes the draft while no transaction is open. None completes the item without saving. Raises ModelError.
        is_unchanged: Returns whether the source is still the one that the draft was made from; the item's line is
            locked. If it returns False, the item is due again, and its attempts are counted from zero. None completes
            the item without saving, because the target of the draft no longer exists.
        save: Writes the draft. Before it is called, the runner has locked the line (if the item belongs to one),
            checked the lease and deleted the work item, in the same transaction. If the transaction is rolled back
            because PostgreSQL is away or a lock stays held, `is_unchanged` and `save` are called again with the same
            draft.

    """

    prefix: str = ""
    read: Callable[[JobContext, DbSession, Claimed], Awaitable[Source | None]]
    draft: Callable[[JobContext, Claimed, Source], Awaitable[Draft | None]]
    is_unchanged: Callable[[DbSession, Made[Source, Draft]], Awaitable[bool | None]] = _never_changes
    save: Callable[[DbSession, Made[Source, Draft]], Awaitable[None]]
