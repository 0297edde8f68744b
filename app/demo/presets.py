"""The preset that the demo plays."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, get_args

from app.chats.settings import PresetName
from app.demo.errors import DemoError

PRESETS: tuple[str, ...] = get_args(PresetName)


def apply_preset(chat: Mapping[str, Any], preset: str) -> dict[str, Any]:
    """Return the body of `PUT /v1/chats/{chat_id}` with this preset; other settings of `chat` are kept.

    Raises DemoError if the preset does not exist.
    """
    if preset not in PRESETS:
        near = get_close_matches(preset.lower(), PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(PRESETS)}"
        raise DemoError(f"--preset {preset}: there is no such preset; {hint}")
    settings = chat.get("settings") or {}
    if not isinstance(settings, Mapping):
        raise DemoError("the file's settings are not a JSON object")
    return {**chat, "settings": {**settings, "preset": preset}}
