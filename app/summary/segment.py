"""What the summary puts into a context, of what the chat's row holds of it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.chats.settings import ChatSettings
from app.chats.told import Told

HEADING = "## Recent Conversation Summary"


def tell(shown: Mapping[str, Any], _settings: ChatSettings, *, character: str | None) -> Sequence[Told]:  # noqa: ARG001
    """The version that is shown, under its heading."""
    if not shown.get("text"):
        return ()
    return (
        Told(
            "summary",
            word(shown["text"]),
            shown["tokens"],
            sources=(f"summary:{shown['version']}",),
        ),
    )


def word(text: str) -> str:
    """A version's text as it stands in the prompt."""
    return f"{HEADING}\n\n{text}"
