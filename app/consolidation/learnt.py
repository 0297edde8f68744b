"""What consolidation learns: facts and memories, each with the messages that it comes from. Pure."""

from dataclasses import dataclass
from typing import Literal

from app.memories.memory import DEFAULT_IMPORTANCE, Category

LearntKind = Literal["fact", "memory"]
PROMOTION_IMPORTANCE = 0.6
"""A sentence of a message is quoted as a memory only if it is more important than this."""

MAX_CONTENT_CHARS = 400
MAX_VALUE_CHARS = 200
MAX_TAGS = 5
MAX_TAG_CHARS = 30


@dataclass(frozen=True, slots=True)
class Learnt:
    """A fact or a memory.

    Raises ValueError if a fact has no key, a memory has one, there is no content or no source, or the importance is
    not between 0 and 1.

    Attributes:
        kind: `fact` or `memory`.
        key: What the fact is about, as `normalise_key` returns it; None for a memory.
        content: For a fact, its value; for a memory, one concise sentence.
        sources: The seqs of the messages that it comes from, at least one, ascending.
        category: The category, or None if none fits.
        importance: From 0 to 1.
        tags: Short words in lower case, at most five.
        is_firm: Whether a fact that a rule has learnt may replace a value that a model or a tool wrote.

    """

    kind: LearntKind
    key: str | None
    content: str
    sources: tuple[int, ...]
    category: Category | None = None
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    is_firm: bool = True

    def __post_init__(self) -> None:
        if (self.kind == "fact") != bool(self.key):
            raise ValueError("a fact must have a key, and a memory must not")
        if not self.content or not self.sources:
            raise ValueError("must have a content and at least one source")
        if not 0 <= self.importance <= 1:
            raise ValueError("importance must be between 0 and 1")


def shorten(text: str, max_chars: int) -> str:
    """Return `text`; if it has more than `max_chars` characters, cut it, between words if possible, and add `…`."""
    if len(text) <= max_chars:
        return text
    head = text[: max_chars - 1]
    words = head.rpartition(" ")[0]
    return f"{words if len(words) > len(head) // 2 else head}…"
