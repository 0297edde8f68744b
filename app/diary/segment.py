"""What a diary puts into a context, of what the chat's row holds of it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.chats.settings import ChatSettings
from app.chats.told import Told


def tell(shown: Mapping[str, Any], _settings: ChatSettings, *, character: str | None) -> Sequence[Told]:
    """The diary of `character` and nobody else's; without one, that of a chat which names no characters."""
    diary = shown.get("characters", {}).get(character or "")
    if not diary:
        return ()
    return (Told("diary", diary["text"], diary["tokens"], sources=tuple(diary["sources"])),)
