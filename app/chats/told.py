"""What a layer has told to go into the contexts of a chat. Pure."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Told:
    """One text that a layer puts into a context.

    Attributes:
        name: The segment's name, which has a place of its own in the order of segments.
        text: What the model reads.
        tokens: o200k tokens of `text`.
        sources: What it was made of: `summary:3`, `diary:…`.
        place: `in_order` by its name; `before_prompt` ahead of everything; `in_chat` among the messages.
        depth: With `in_chat`: how many messages back from the end it stands.
        role: Who says it, where a format lets it have a role of its own.
        scan: Whether the caller's lorebook should look through it; None where that is not said.

    """

    name: str
    text: str
    tokens: int
    sources: tuple[str, ...] = ()
    place: Literal["in_order", "before_prompt", "in_chat"] = "in_order"
    depth: int = 0
    role: Literal["system", "user", "assistant"] = "system"
    scan: bool | None = None
