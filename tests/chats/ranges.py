"""Stored messages as the pure rules of layers see them."""

from typing import Any

from app.chats.head import RangeMessage


def message(seq: int, role: str = "user", **fields: Any) -> RangeMessage:
    """A message that is summarised, unless `fields` say otherwise."""
    base = RangeMessage(seq, f"m{seq}", role, None, None, 5, False, False, None, False, bytes([seq]))
    return base._replace(**fields)
