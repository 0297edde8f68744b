"""Which memory layers there are, and what follows from a change, in plain order.

Rooms below trigger upwards by name (`kit.db.defer`); the names and what follows are listed here.
Everything runs in the transaction of the change, so memory and conversation never disagree.
"""

from collections.abc import Callable
from uuid import UUID

from app.chats.cutting import cut_after_append, cut_if_settled
from app.chats.head import Advance, Head
from app.chats.service import ChatRef, lock_head, update_head
from app.kit.clock import Clock
from app.kit.db import DbSession, Follower, after_commit
from app.memos import service as memos

LAYERS = (memos,)


class Pipeline:
    """What follows from what.

    Args:
        clock: The service's clock.
        settle_s: How long new work waits for edits and swipes.
        ring: Tells the workers, soon and without blocking, that something is due.

    """

    def __init__(self, *, clock: Clock, settle_s: float, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._settle_s = settle_s
        self._ring = ring

    def followers(self) -> dict[str, Follower]:
        """What runs when something is deferred, by name."""
        return {
            "line_advanced": self._line_advanced,
            "chat_changed": self._chat_changed,
            "book_changed": self._layer_settled,
            "layer_settled": self._layer_settled,
            "work_due": self._work_due,
        }

    async def _line_advanced(self, db_session: DbSession, advance: Advance) -> None:
        """Messages were appended: plan work, judge the cut, write the head."""
        for layer in LAYERS:
            await layer.plan(db_session, advance, settle_s=self._settle_s)
        if await cut_after_append(db_session, advance, LAYERS):
            await self._refresh(db_session, advance.head)
        await update_head(db_session, advance.head)

    async def _chat_changed(self, db_session: DbSession, ref: ChatRef) -> None:
        """Settings may have changed what is shown, and what a cut waits for: the next append judges it anew."""
        head = await lock_head(db_session, ref)
        head.cut_waits = False
        await self._refresh(db_session, head)
        await update_head(db_session, head)

    async def _layer_settled(self, db_session: DbSession, head: Head) -> None:
        """Something was made, written, deleted or has failed for good: judge a waiting cut anew, then show it."""
        await cut_if_settled(db_session, head, LAYERS, now=self._clock())
        await self._refresh(db_session, head)
        await update_head(db_session, head)

    async def _work_due(self, db_session: DbSession, _chat_key: UUID) -> None:
        """Ring once the work stands."""
        after_commit(db_session, self._ring)

    async def _refresh(self, db_session: DbSession, head: Head) -> None:
        for layer in LAYERS:
            await layer.refresh(db_session, head)
