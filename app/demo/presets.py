"""The presets that the demo can play: those with at least one layer that makes memories in this version."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, get_args

from app.chats.settings import ChatSettings, PresetName, effective
from app.demo.errors import DemoError
from app.registry import LAYERS

PRESETS: tuple[str, ...] = get_args(PresetName)


def apply_preset(chat: Mapping[str, Any], preset: str) -> dict[str, Any]:
    """Return the body of `PUT /v1/chats/{chat_id}` with this preset; other settings of `chat` are kept.

    Raises DemoError if the preset does not exist or cannot be played.
    """
    _check(preset)
    settings = chat.get("settings") or {}
    if not isinstance(settings, Mapping):
        raise DemoError("the file's settings are not a JSON object")
    return {**chat, "settings": {**settings, "preset": preset}}


def list_playable() -> list[str]:
    """Return the names of the presets that can be played."""
    return [name for name in PRESETS if _makes_anything(effective({"preset": name}))]


def _check(preset: str) -> None:
    playable = ", ".join(list_playable())
    if preset not in PRESETS:
        near = get_close_matches(preset.lower(), PRESETS, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; choose one of {playable}"
        raise DemoError(f"--preset {preset}: there is no such preset{hint}")
    settings = effective({"preset": preset})
    if not _makes_anything(settings):
        missing = " and ".join(settings.missing_layers())
        raise DemoError(f"--preset {preset}: this version does not make its {missing} yet; choose one of {playable}")


def _makes_anything(settings: ChatSettings) -> bool:
    """Return whether a layer makes memories of the messages by itself: one that has jobs and is on."""
    return any(layer.jobs and layer.is_enabled(settings) for layer in LAYERS)
