"""The settings of diaries. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import LayerSettings, PlacementSettings


class DiarySettings(LayerSettings, PlacementSettings):
    """The character's diary."""

    section: ClassVar[str] = "diary"

    enabled: bool = Field(
        False,
        description="Whether diaries are folded, and the service may write into them. "
        "What a character or a person wrote is shown all the same.",
    )
    lines: int = Field(50, ge=1, le=500, description="How many of the last lines go into the prompt.")
    auto_write_turns: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="Write an entry every so many turns without a tool call; null is off.",
    )
