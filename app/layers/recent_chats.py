"""Remembers what the queries of layers found for the chats that this process has read last.

The row of a chat has the revisions of its facts, blocks and memories (`changed`). The rows of its user and its tenant
have the revisions of what is known in wider scopes. While all of these are equal to the revisions that were read with
the results, the queries would find the same again, because they use neither the clock nor anything of the request.
"""

import sys
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import NamedTuple
from uuid import UUID

from app.layers.recently_used import RecentlyUsed

MOST_CHANGES = 2
"""If the remembered results of a chat were outdated in this many contexts in a row, the next context reads the chat
with all queries at once."""


class Remembered(NamedTuple):
    """The results of the queries of layers for the current line of a chat.

    Attributes:
        tag: The revisions that were read with the results. If the revisions have changed, the results may have, too.
        found: The results, by the layer's name.
        needs_others: Whether the chat also needs queries whose results are not remembered.
        changes: How many times in a row the chat was read with another `tag` than the time before. After MOST_CHANGES,
            it is read with all queries at once, because its results are probably outdated again.

    """

    tag: Hashable
    found: Mapping[str, str | None]
    needs_others: bool
    changes: int = 0


class RecentChats:
    """The chats that needed queries of layers when this process last read them.

    Only queries of layers with the condition `Layer.queried_if` count; a chat needs them if the condition is true.
    The collection may be outdated, because it decides only which SQL statement is sent first, not the answer.

    Args:
        max_chats: How many keys of chats are kept.
        max_bytes: The maximum size of all results that are kept, in bytes.

    """

    def __init__(self, max_chats: int, max_bytes: int) -> None:
        self._max_chats = max_chats
        self._keys: OrderedDict[UUID, None] = OrderedDict()
        self._remembered = RecentlyUsed[UUID, Remembered](max_bytes)

    def __contains__(self, chat_key: UUID) -> bool:
        return chat_key in self._keys

    def find(self, chat_key: UUID) -> Remembered | None:
        """Return what is remembered of a chat, even if it is outdated; None if nothing is remembered."""
        return self._remembered.find(chat_key)

    def note(self, chat_key: UUID, remembered: Remembered | None) -> None:
        """Remember what was found for a chat; None forgets the chat, because it needs none of the queries."""
        if remembered is None:
            self._keys.pop(chat_key, None)
            self._remembered.drop(chat_key)
            return
        self._keys[chat_key] = None
        self._keys.move_to_end(chat_key)
        if len(self._keys) > self._max_chats:
            self._keys.popitem(last=False)
        self._remembered.keep(chat_key, remembered, sum(sys.getsizeof(one) for one in remembered.found.values()))
