"""What a memory is. Pure."""

from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

from app.chats.settings import Scope
from app.knowledge.known import SCOPES

Category = Literal["personal", "preference", "goal", "context", "relationship", "technical"]

CATEGORIES: tuple[Category, ...] = get_args(Category)

DEFAULT_IMPORTANCE = 0.5


class Memory(NamedTuple):
    """A memory with the text that holds for the reader.

    Attributes:
        memory_id: Its id, which is the key of all of its statements.
        statement_id: The id of the statement that holds.
        rank: The rank of its scope (`SCOPES`).
        character: The current name of the character in the scope `character`; None in the others.
        content: One sentence.
        category: None if it has none of the categories.
        importance: From 0 to 1.
        tags: Short words.
        origin: Who wrote it.
        edited: Whether a person replaced a text that the service had written.
        learnt_at: When the statement was learnt.
        said_at: The date from which its age counts: when the newest message that teaches it was sent. For a text that a
            person wrote, when it was written, or when a later message that teaches it was sent.
        pinned: Whether neither its age nor the number of memories moves it to the archive.
        order_key: Greater for the stronger of two memories, at any time (`decay.order_key`).
        archived: Whether it is in the archive.
        archived_by_person: True if a person put it into the archive, False if a person brought it back, None if
            neither.
        chosen: Which of `category`, `importance` and `tags` a person set.

    """

    memory_id: UUID
    statement_id: UUID
    rank: int
    character: str | None
    content: str
    category: Category | None
    importance: float
    tags: tuple[str, ...]
    origin: str
    edited: bool
    learnt_at: datetime
    said_at: datetime
    pinned: bool
    order_key: float
    archived: bool
    archived_by_person: bool | None
    chosen: tuple[str, ...]

    @property
    def scope(self) -> Scope:
        """The name of the scope."""
        return SCOPES[self.rank]

    @property
    def choices(self) -> dict[str, Any]:
        """What persons chose, as columns of a statement. The next text of the memory keeps these values."""
        values = {"category": self.category, "importance": self.importance, "tags": list(self.tags)}
        return {
            "pinned": self.pinned,
            "archived": self.archived_by_person,
            "chosen": list(self.chosen),
            **{name: values[name] for name in self.chosen},
        }
