"""The settings of the summary. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import LayerSettings, PlacementSettings

FOLD_EDGES = "folds"
"""The value of `history.edges` with which the history is cut at folds."""


class SummarySettings(LayerSettings, PlacementSettings):
    """The rolling summary."""

    section: ClassVar[str] = "summary"

    enabled: bool = Field(False, description="Whether old messages are folded into a summary.")
    threshold_messages: int = Field(
        20, ge=2, le=1_000, description="A fold starts when more messages than this are uncovered."
    )
    keep_messages: int = Field(15, ge=1, le=1_000, description="How many of the newest messages a fold leaves.")
