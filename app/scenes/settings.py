"""The settings of scenes. Pure."""

from typing import ClassVar, Literal

from pydantic import Field

from app.chats.settings import LayerSettings, PlacementSettings

SCENE_EDGES = "scenes"
"""The value of `history.edges` with which the history is cut at breaks."""


class RecapSettings(PlacementSettings):
    """The running recap of all scenes, and its position in the prompt."""

    exclude_latest: int = Field(0, ge=0, le=100, description="How many of the newest closed scenes it leaves out.")
    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "before_prompt", description="The position of the recap; SillyTavern's numbers are accepted."
    )
    scan: bool | None = Field(False, description="As `scan` of the other segments.")


class SceneSettings(LayerSettings):
    """Scenes and their recaps."""

    section: ClassVar[str] = "scenes"

    enabled: bool = Field(False, description="Whether the chat is divided into scenes.")
    detect: bool = Field(
        True, description="Whether the service searches for breaks itself. A search begins when a reply is appended."
    )
    offset: int = Field(
        2, ge=0, le=50, description="How many of the newest messages a search reads without setting a break on them."
    )
    min_messages: int = Field(
        10, ge=1, le=1_000, description="A search closes only scenes with at least this many messages."
    )
    max_messages: int = Field(
        100,
        ge=10,
        le=1_000,
        description="How many messages one search for breaks examines at most. As context it also reads up to 10 "
        "messages that an earlier search has examined.",
    )
    auto_hide: int | None = Field(
        2,
        ge=-1,
        le=1_000,
        description="How many of the newest scenes stay visible; the open scene counts as one. Messages of older "
        "scenes are hidden from the prompt once the running recap covers them, as long as `history.keep_messages` "
        "messages stay visible. -1 hides none.",
    )
    recap: RecapSettings = Field(RecapSettings(), description="The running recap.")
