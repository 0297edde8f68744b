"""The settings of diaries. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import LayerSettings, PlacementSettings


class DiarySettings(LayerSettings, PlacementSettings):
    """The character's diary."""

    section: ClassVar[str] = "diary"

    enabled: bool = Field(
        False,
        description="Whether diaries are folded and the service may write into them. "
        "Entries that a character or a person wrote are shown in either case.",
    )
    lines: int = Field(50, ge=1, le=500, description="The number of a diary's last lines in the prompt.")
    auto_write_turns: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="The number of turns after which the service writes an entry if the character has not called "
        "the tool; null is off.",
    )
