"""The settings of facts. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import Budget, LayerSettings, PlacementSettings


class FactSettings(LayerSettings, PlacementSettings):
    """Facts: what is known for certain, as keys and values."""

    section: ClassVar[str] = "facts"

    enabled: bool = Field(
        True,
        description="Whether facts may be learnt from the conversation. Facts that a character or a person set are "
        "always shown.",
    )
    budget: Budget | None = Field(
        Budget(type="percent", value=10),
        description="A token limit for the facts in the prompt; null sets none. If the facts exceed it, the oldest "
        "ones are left out.",
    )
