"""The settings of memos. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import Budget, EligibilitySettings, PlacementSettings

OWN_EDGES = "batches"
"""The `history.edges` with which the history is cut at batches."""


class MemoSettings(EligibilitySettings, PlacementSettings):
    """Memos: 2–3 highlights for every few messages."""

    section: ClassVar[str] = "memos"

    enabled: bool = Field(
        True,
        description="Whether batches are formed and memos made. Switched on in a chat that ran without, "
        "it takes up what is in the history and as much before it as the window shows.",
    )
    every_messages: int = Field(8, ge=1, le=64, description="Eligible messages in a batch.")
    window: int = Field(15, ge=0, le=200, description="How many of the newest memos go into the prompt.")
    budget: Budget | None = Field(None, description="The most that memos may take; null is no limit of their own.")
    pinned_budget: Budget | None = Field(None, description="The most that pinned memos may take.")

    @property
    def most_messages_uncovered(self) -> int:
        """A batch."""
        return self.every_messages
