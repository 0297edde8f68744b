"""The part of a memory layer that chats depend on; the whole descriptor is `app.layers.layer.Layer`.

A layer covers a message if one of its objects, such as a memo, was made from the message, which then need not be sent
any more. An edge is a seq at which the history may begin after a cut.
"""

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from app.chats.coverage import Coverage
from app.chats.head import Head
from app.chats.settings import BUILT_IN_EDGES, EVERY_8, ChatSettings
from app.kit.db import DbSession


class CoveringLayer(Protocol):
    """The interface of a layer for cuts and for the list of messages; `Layer` documents each call in full."""

    @property
    def edges(self) -> str | None:
        """The name of its edges in the setting `history.edges`; None if it has none."""
        ...

    @property
    def adds_edges_late(self) -> bool:
        """Whether an edge can appear when a job of the layer ends, not only with new messages."""
        ...

    @property
    def sets_memo_id(self) -> bool:
        """Whether a message's `memo_id` is the id of the layer's row that covers it."""
        ...

    def is_enabled(self, settings: ChatSettings) -> bool:
        """Return whether these settings switch the layer on."""
        ...

    def covered_through(
        self, db_session: DbSession, head: Head, from_seq: int, until_seq: int, /
    ) -> Awaitable[int | None]:
        """Return the last seq that the layer covers, or None if no cut has to wait for the layer."""
        ...

    def request_coverage(
        self, db_session: DbSession, head: Head, until_seq: int, /, *, now: datetime
    ) -> Awaitable[bool]:
        """Schedule the work that is missing to cover all up to `until_seq`; return False if it cannot be done."""
        ...

    def list_coverage(
        self, db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int, /
    ) -> Awaitable[Sequence[Coverage]]:
        """Return the coverage of the messages of the range (inclusive)."""
        ...

    def list_edges(self, db_session: DbSession, head: Head, from_seq: int, /) -> Awaitable[Sequence[int]]:
        """Return the seqs at which a cut may begin the history: all from `from_seq` on, and perhaps some before."""
        ...

    def seeks_edges(self, db_session: DbSession, head: Head, until_seq: int, /, *, now: datetime) -> Awaitable[bool]:
        """Return whether the layer still searches for edges up to `until_seq`, so that a forced cut waits."""
        ...


def edges_in_effect(settings: ChatSettings, layers: Sequence[CoveringLayer]) -> str:
    """Return the edges of a chat: those of its settings, or every eighth seq if the layer that gives them is off."""
    chosen = settings.history.edges
    if chosen in BUILT_IN_EDGES or any(layer.edges == chosen and layer.is_enabled(settings) for layer in layers):
        return chosen
    return EVERY_8
