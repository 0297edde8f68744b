"""The settings of memos. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import Budget, EligibilitySettings, PlacementSettings

BATCH_EDGES = "batches"
"""The value of `history.edges` that cuts the history at the ends of batches."""


class MemoSettings(EligibilitySettings, PlacementSettings):
    """Memos: 2–3 highlights for every few messages."""

    section: ClassVar[str] = "memos"

    enabled: bool = Field(
        True,
        description="Whether batches are formed and summarised. If memos are switched on later, a backfill makes the "
        "memos of older messages.",
    )
    every_messages: int = Field(
        8,
        ge=1,
        le=64,
        description="The number of messages in a batch, without those that are not summarised.",
    )
    window: int = Field(15, ge=0, le=200, description="The number of newest memos in the prompt.")
    budget: Budget | None = Field(None, description="A token limit for the memos of the window; null sets none.")
    pinned_budget: Budget | None = Field(None, description="A token limit for pinned memos; null sets none.")

    @property
    def most_messages_uncovered(self) -> int:
        """The size of a batch: its messages have no memo until the batch is full."""
        return self.every_messages
