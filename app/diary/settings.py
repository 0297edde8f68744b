"""The settings of diaries. Pure."""

from typing import ClassVar, Literal

from pydantic import Field

from app.chats.settings import LayerSettings, PlacementSettings


class RecentSettings(PlacementSettings):
    """The segment `diary_recent`: the diary's entries since the last cut."""

    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "in_prompt",
        description="The position; `in_prompt` puts it after the history. If `diary.position` is `none`, this segment "
        "is omitted, too.",
    )


class DiarySettings(LayerSettings, PlacementSettings):
    """The character's diary."""

    section: ClassVar[str] = "diary"

    enabled: bool = Field(
        False,
        description="Whether diaries are folded and the service may write into them. Entries of characters and people "
        "are always shown.",
    )
    scope: Literal["chat", "character"] = Field(
        "chat",
        description="`character` shares each diary with the user's other chats that have the same character and this "
        "setting: contexts also contain the valid entries of these chats.",
    )
    lines: int = Field(
        50,
        ge=1,
        le=500,
        description="The maximum number of lines in the segment `diary`. Each cut fills it with the newest lines of "
        "the diary. Entries after the cut are in `diary_recent`, which has up to 20 lines of its own.",
    )
    auto_write_turns: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="After every period of this many turns, the service writes an entry if the character wrote none; "
        "null is off.",
    )

    recent: RecentSettings = Field(RecentSettings(), description="The segment `diary_recent`.")

    @property
    def is_shared(self) -> bool:
        """Whether the diaries are shared, if the chat has a user."""
        return self.scope == "character"
