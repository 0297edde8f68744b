"""The settings of core blocks. Pure."""

from typing import ClassVar

from pydantic import Field

from app.chats.settings import Budget, LayerSettings, PlacementSettings


class BlockSettings(LayerSettings, PlacementSettings):
    """Core blocks: short texts that are always in the prompt."""

    section: ClassVar[str] = "blocks"

    enabled: bool = Field(
        True,
        description="Whether the tool `memory_block_update` is offered, and the block `facts` may begin with memories. "
        "Blocks that were written are shown in either case.",
    )
    from_memories: bool = Field(
        True,
        description="Whether the block `facts` begins with the 50 most important memories, which are chosen again "
        "whenever a memory of importance 0.7 or more arrives. It never does if `enabled` is false, or if a person "
        "wrote the whole text. After a character wrote the whole text, only memories that are stored later are added.",
    )
    budget: Budget | None = Field(
        None,
        description="A token limit for the blocks in the prompt; null sets none. If they exceed it, the last ones in "
        "the order `persona`, `user`, `facts`, `context` are left out.",
    )
