"""Which memory layers there are, and what follows from a change, in plain order.

Rooms below trigger upwards by name (`kit.db.defer`); the names and what follows are listed here.
Everything runs in the transaction of the change, so memory and conversation never disagree.
"""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from app.chats.changes import Change, Move, Shortening
from app.chats.cutting import cut_after_append, cut_if_settled, recheck_wait, settle_anchor
from app.chats.head import Advance, Head
from app.chats.layers import Layer
from app.chats.service import ChatRef, lock_head, update_head
from app.diary import service as diary
from app.kit.clock import Clock
from app.kit.db import DbSession, Follower, after_commit
from app.memos import service as memos
from app.scenes import service as scenes
from app.summary import service as summary

LAYERS: tuple[Layer, ...] = (memos, summary, diary, scenes)


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
            "messages_changed": self._messages_changed,
            "line_shortened": self._line_shortened,
            "messages_moved": self._messages_moved,
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
            await self._note_cut(db_session, advance.head, advance.now)
            await self._refresh(db_session, advance.head)
        await update_head(db_session, advance.head)

    async def _messages_changed(self, db_session: DbSession, change: Change) -> None:
        """Messages say something else, are hidden, or are gone: what was made from them is stale and due."""
        head, now = change.head, change.now
        for layer in LAYERS:
            await layer.note_change(db_session, change, settle_s=self._settle_s)
        if change.alters_history and await settle_anchor(db_session, head, LAYERS, by_scenes=change.by_scenes, now=now):
            await self._note_cut(db_session, head, now)
        await self._bring_in_line(db_session, head, now)

    async def _line_shortened(self, db_session: DbSession, cut_off: Shortening) -> None:
        """The end of a line is gone: what was made of it goes, what was made of a part of it opens again."""
        head, now = cut_off.head, cut_off.now
        for layer in LAYERS:
            await layer.reopen(db_session, cut_off, settle_s=self._settle_s)
        if await settle_anchor(db_session, head, LAYERS, now=now):
            await self._note_cut(db_session, head, now)
        await self._bring_in_line(db_session, head, now)

    async def _messages_moved(self, db_session: DbSession, move: Move) -> None:
        """Messages stand elsewhere on a new line: what people wrote of them goes with them."""
        for layer in LAYERS:
            await layer.bring_along(db_session, move)
        await self._refresh(db_session, move.head)
        await update_head(db_session, move.head)

    async def _bring_in_line(self, db_session: DbSession, head: Head, now: datetime) -> None:
        """Let go of a cut that waits for what is gone, and show what is true now."""
        await recheck_wait(db_session, head, LAYERS, now=now)
        await self._refresh(db_session, head)
        await update_head(db_session, head)

    async def _chat_changed(self, db_session: DbSession, ref: ChatRef) -> None:
        """Settings may have changed what is shown, and what a cut waits for: the next append judges it anew."""
        head = await lock_head(db_session, ref)
        head.cut_waits = False
        for layer in LAYERS:
            await layer.catch_up(db_session, head, now=self._clock(), settle_s=self._settle_s)
        await self._refresh(db_session, head)
        await update_head(db_session, head)

    async def _layer_settled(self, db_session: DbSession, head: Head) -> None:
        """Something was made, written, deleted or has failed for good: judge a waiting cut anew, then show it."""
        if await cut_if_settled(db_session, head, LAYERS, now=self._clock()):
            await self._note_cut(db_session, head, self._clock())
        await self._refresh(db_session, head)
        await update_head(db_session, head)

    async def _work_due(self, db_session: DbSession, _chat_key: UUID) -> None:
        """Ring once the work stands."""
        after_commit(db_session, self._ring)

    async def _note_cut(self, db_session: DbSession, head: Head, now: datetime) -> None:
        """The history begins elsewhere: what nothing stands for before it is due, and a forced cut ends a scene."""
        await summary.note_cut(db_session, head, now=now, settle_s=self._settle_s)
        await scenes.note_cut(db_session, head, now=now, settle_s=self._settle_s)

    async def _refresh(self, db_session: DbSession, head: Head) -> None:
        for layer in LAYERS:
            await layer.refresh(db_session, head)
