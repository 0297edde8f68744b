"""What the log asks of a memory layer. `app/pipeline.py` lists the layers there are."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from app.chats.changes import Change, Move, Shortening
from app.chats.cover import Cover
from app.chats.head import Advance, Head
from app.chats.settings import ChatSettings
from app.chats.told import Told
from app.kit.db import DbSession


class Layer(Protocol):
    """A kind of memory, by the functions that its `service` module offers under these names."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """Its name, in due work and in the context."""
        ...

    async def plan(self, db_session: DbSession, advance: Advance, *, settle_s: float) -> None:
        """Say what work the new messages make due; may change `advance.head`."""
        ...

    async def note_change(self, db_session: DbSession, change: Change, *, settle_s: float) -> None:
        """Say of what was made from changed messages that it is stale, and make it due; may change `change.head`."""
        ...

    async def catch_up(self, db_session: DbSession, head: Head, *, now: datetime, settle_s: float) -> None:
        """Make due what has gone stale while the chat's settings had the layer switched off."""
        ...

    async def reopen(self, db_session: DbSession, cut_off: Shortening, *, settle_s: float) -> None:
        """Forget what lies wholly from `from_seq` on, and open again what goes through it; may change the head."""
        ...

    async def bring_along(self, db_session: DbSession, move: Move) -> None:
        """Take over from another line what people wrote of messages that have moved; may change `move.head`."""
        ...

    async def settled_seq(self, db_session: DbSession, head: Head, from_seq: int, until_seq: int) -> int | None:
        """Up to which seq (inclusive) the layer stands for old text from `from_seq` on; None if it need not.

        `until_seq` (inclusive) is where that is to end: what reaches past it may not stand for anything there.
        """
        ...

    async def prepare(self, db_session: DbSession, head: Head, until_seq: int, *, now: datetime) -> bool:
        """Make due what is missing to stand for old text up to `until_seq` (inclusive): a full cut waits for it.

        Says whether that can be made at all.
        """
        ...

    async def list_edges(self, db_session: DbSession, head: Head, from_seq: int) -> Sequence[int]:
        """Where a cut may fall from `from_seq` on, if this chat's edges are this layer's."""
        ...

    async def refresh(self, db_session: DbSession, head: Head) -> None:
        """Bring what the chat's row holds of this layer in line with its tables and the anchor."""
        ...

    async def list_covers(
        self, db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
    ) -> Sequence[Cover]:
        """What covers messages of the range, in its order."""
        ...

    def tell(self, shown: Mapping[str, Any], settings: ChatSettings, *, character: str | None) -> Sequence[Told]:
        """What the layer puts into a context, of what `refresh` left on the chat's row under its name. Pure.

        `character` is whose prompt it is, if that is known.
        """
        ...
