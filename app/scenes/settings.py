"""The settings of scenes. Pure."""

from typing import ClassVar, Literal

from pydantic import Field

from app.chats.settings import LayerSettings, PlacementSettings

SCENE_EDGES = "scenes"
"""The value of `history.edges` with which the history is cut at breaks."""


class RecapSettings(PlacementSettings):
    """The running recap of all scenes, and its segment."""

    exclude_latest: int = Field(0, ge=0, le=100, description="How many of the newest closed scenes it omits.")
    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "before_prompt", description="As `position` of the other segments."
    )
    scan: bool | None = Field(False, description="As `scan` of the other segments.")


class SceneSettings(LayerSettings):
    """Scenes and their recaps."""

    section: ClassVar[str] = "scenes"

    enabled: bool = Field(False, description="Whether the chat is divided into scenes.")
    detect: bool = Field(
        True,
        description="Whether the service searches for breaks. A search begins after a reply if 12 messages were not "
        "searched yet; 4 are enough if there was a long pause before or between them.",
    )
    offset: int = Field(
        2, ge=0, le=50, description="How many of the newest messages can get no break. A search reads them, too."
    )
    min_messages: int = Field(10, ge=1, le=1_000, description="A search closes no scene with fewer messages.")
    max_messages: int = Field(
        100,
        ge=10,
        le=1_000,
        description="How many messages a search examines at most, besides up to 10 earlier ones as context.",
    )
    auto_hide: int | None = Field(
        2,
        ge=-1,
        le=1_000,
        description="How many of the newest scenes stay visible, including the open one; -1 hides none. Older scenes "
        "are hidden once the running recap covers them, if `history.keep_messages` messages stay visible.",
    )
    recap: RecapSettings = Field(RecapSettings(), description="The running recap.")
