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
        20,
        ge=2,
        le=1_000,
        description="With `history.edges: folds`, a fold starts when more messages than this are not folded. With "
        "other edges, it starts when a cut waits for it.",
    )
    keep_messages: int = Field(
        15,
        ge=1,
        le=1_000,
        description="With `history.edges: folds`: how many of the newest messages are not folded.",
    )
