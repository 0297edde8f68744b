"""The settings of consolidation. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import LayerSettings


class ConsolidationSettings(LayerSettings):
    """Learning facts and memories from the conversation."""

    section: ClassVar[str] = "consolidation"

    enabled: bool = Field(False, description="Whether facts and memories are learnt from the conversation.")
    every_turns: int = Field(
        5,
        ge=1,
        le=1_000,
        description="After how many turns facts and memories are learnt; after 40 messages at the latest.",
    )
