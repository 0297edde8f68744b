"""The settings of diaries. Pure."""

from typing import ClassVar, Literal

from pydantic import Field

from app.chats.settings import LayerSettings, PlacementSettings


class RecentSettings(PlacementSettings):
    """The diary's entries since the last cut, and their position in the prompt."""

    position: Literal["none", "before_prompt", "in_prompt", "in_chat", -1, 0, 1, 2] = Field(
        "in_prompt",
        description="The position of the segment `diary_recent`; `in_prompt` puts it after the history. SillyTavern's "
        "numbers are accepted. If the position of the diary itself is `none`, both segments are omitted.",
    )


class DiarySettings(LayerSettings, PlacementSettings):
    """The character's diary."""

    section: ClassVar[str] = "diary"

    enabled: bool = Field(
        False,
        description="Whether diaries are folded and the service may write into them. "
        "Entries that a character or a person wrote are shown in either case.",
    )
    scope: Literal["chat", "character"] = Field(
        "chat",
        description="`character` shares each diary with the user's other chats that have the same character and this "
        "setting: the prompt also shows the entries of the other chats, as long as they are valid in "
        "those chats.",
    )
    lines: int = Field(
        50,
        ge=1,
        le=500,
        description="The maximum number of lines of text in the segment `diary`: the last lines of the diary as it was "
        "at the last cut. Later entries are in the segment `diary_recent`, which has up to 20 lines of its own.",
    )
    auto_write_turns: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="The number of turns after which the service writes an entry if the character has not called "
        "the tool; null is off.",
    )

    recent: RecentSettings = Field(
        RecentSettings(), description="The segment `diary_recent`: the entries since the last cut."
    )

    @property
    def is_shared(self) -> bool:
        """Whether the diaries are shared, if the chat has a user."""
        return self.scope == "character"
