"""What scenes put into a context, of what the chat's row holds of them: the running recap. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from app.chats.settings import ChatSettings
from app.chats.told import Told
from app.kit.tokens import count_tokens

HEADING = "## Running Recap"

_HEADINGS = re.compile(r"^# ", re.MULTILINE)

Place = Literal["in_order", "before_prompt", "in_chat"]

_PLACES: Mapping[str | int, Place | None] = {
    "none": None,
    "before_prompt": "before_prompt",
    "in_prompt": "in_order",
    "in_chat": "in_chat",
    -1: None,
    2: "before_prompt",
    0: "in_order",
    1: "in_chat",
}


def tell(shown: Mapping[str, Any], settings: ChatSettings, *, character: str | None) -> Sequence[Told]:  # noqa: ARG001
    """The version that is shown, where the settings want it."""
    recap = settings.scenes.recap
    place = _PLACES[recap.position]
    if place is None or not shown.get("text"):
        return ()
    in_chat = place == "in_chat"
    return (
        Told(
            "recap",
            word(shown["text"]),
            shown["tokens"],
            sources=(f"recap:{shown['version']}",),
            place=place,
            depth=recap.depth if in_chat else 0,
            role=recap.role if in_chat else "system",
            scan=recap.scan,
        ),
    )


def word(text: str) -> str:
    """The running recap under its heading, its own headings below that."""
    return f"{HEADING}\n\n{_HEADINGS.sub('### ', text)}"


def count_told(text: str) -> int:
    """The tokens of the running recap under its heading."""
    return count_tokens(word(text))
