"""What is particular to one kind of job; `runner.py` has what all jobs share."""

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
    """What a job has made and is about to save.

    Attributes:
        locked: The line's head, locked; None if the work item belongs to a user or a tenant.
        claimed: The work item.
        source: What it was made from, as it was read before the draft.
        draft: What was made.
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


async def _never_changes(_db_session: DbSession, _made: Made[Any, Any]) -> bool | None:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[Source, Draft]):
    """One kind of job.

    Attributes:
        prefix: The keys it makes begin with this; "" takes every key that no other job of the layer takes.
        read: Reads what the work item is made from. If it returns None, the runner locks the line and reads again. If
            that returns None too, the item is completed and nothing is made.
        draft: Makes it while no transaction is open; None completes the item without saving. Raises ModelError.
        is_unchanged: Whether the source still is what the draft was made from; the item's line is locked. None
            completes the item without saving, because what it was to be saved to is gone.
        save: Writes it; the line is locked, the lease was checked, the work item is complete.

    """

    prefix: str = ""
    read: Callable[[JobContext, DbSession, Claimed], Awaitable[Source | None]]
    draft: Callable[[JobContext, Claimed, Source], Awaitable[Draft | None]]
    is_unchanged: Callable[[DbSession, Made[Source, Draft]], Awaitable[bool | None]] = _never_changes
    save: Callable[[DbSession, Made[Source, Draft]], Awaitable[None]]
