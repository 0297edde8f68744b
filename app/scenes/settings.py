"""The settings of scenes. Pure."""

from typing import ClassVar, Literal

from pydantic import Field

from app.chats.settings import LayerSettings, PlacementSettings

OWN_EDGES = "scenes"
"""The `history.edges` with which the history is cut at breaks."""


class RecapSettings(PlacementSettings):
    """The running recap of all scenes, and where it is injected."""

    exclude_latest: int = Field(0, ge=0, le=100, description="The newest scenes that are left out.")
    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "before_prompt", description="Where the recap goes; SillyTavern's numbers are accepted."
    )
    scan: bool | None = Field(False, description="Handed through for a caller with a lorebook.")


class SceneSettings(LayerSettings):
    """Scenes and their recaps."""

    section: ClassVar[str] = "scenes"

    enabled: bool = Field(False, description="Whether scenes are kept.")
    detect: bool = Field(True, description="Whether breaks are looked for after the assistant's message.")
    offset: int = Field(2, ge=0, le=50, description="The newest messages that only give context.")
    min_messages: int = Field(10, ge=1, le=1_000, description="A scene is at least so long.")
    max_messages: int = Field(100, ge=10, le=1_000, description="The most messages read in one look.")
    auto_hide: int | None = Field(2, ge=-1, le=1_000, description="Hide all but the last so many; -1: none.")
    recap: RecapSettings = Field(RecapSettings(), description="The running recap.")
