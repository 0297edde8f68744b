"""The open session of a line, as the line's head stores it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from app.chats.head import Head

NAME = "sessions"
"""The layer's name, which is also its key in the cursors of a head."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """The last session of a line.

    Attributes:
        session_id: Its id, which copies of the line keep.
        number: Its number, from 1.
        first_seq: The seq at which it begins; the message may not be there yet.
        turns: How many turns it has; None if they have to be counted.
        lost_messages: Whether some of its messages may be gone (deleted, or cut off), so that it may have none left.

    """

    session_id: UUID
    number: int = 1
    first_seq: int = 1
    turns: int | None = None
    lost_messages: bool = False

    @classmethod
    def first_of(cls, chat_key: UUID) -> "OpenSession":
        """Return the first session of a chat.

        Its id is computed from the chat's key, so a chat without breaks does not have to store it. Once the head
        stores the id, a fork has the same one.
        """
        return cls(uuid5(chat_key, NAME))

    @classmethod
    def of(cls, head: Head) -> "OpenSession":
        """Return the open session of a line."""
        return cls.from_json(head.chat_key, head.cursors.get(NAME))

    @classmethod
    def from_json(cls, chat_key: UUID, stored: Mapping[str, Any] | None) -> "OpenSession":
        """Return the session that `to_json` was called on; the first one if nothing is stored."""
        if stored is None:
            return cls.first_of(chat_key)
        return cls(
            UUID(stored["id"]),
            stored["number"],
            stored["first_seq"],
            stored["turns"],
            stored.get("lost_messages", False),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the value to store in the line's row."""
        stored = {
            "id": str(self.session_id),
            "number": self.number,
            "first_seq": self.first_seq,
            "turns": self.turns,
        }
        return stored | {"lost_messages": True} if self.lost_messages else stored
