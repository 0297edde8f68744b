"""The reference model of the names of a chat's character: those that its messages have, and those that are sent."""

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.oracle.reference.lines import Message


@dataclass
class Naming:
    """The names of the chat's character on a line.

    Attributes:
        names: All of them, the present one last; empty if the chat lists no characters.

    """

    names: list[str] = field(default_factory=list, kw_only=True)

    @property
    def character(self) -> str:
        """The present name of the character; "" if the chat lists no characters."""
        return self.names[-1] if self.names else ""

    def name_of(self, message: "Message") -> str | None:
        """Return the present name of a message's speaker."""
        return self.character if self.names and message.role == "assistant" else message.name

    def name_to_send(self, message: "Message") -> str | None:
        """Return a name of a message's speaker, which may be a former one; its first text selects it."""
        known = self.names if self.names and message.role == "assistant" else [message.name]
        return known[zlib.crc32(message.first_text.encode()) % len(known)]

    def rename(self, name: str) -> None:
        """Give the character another name, maybe one that it had."""
        self.names = [*(one for one in self.names if one != name), name]
