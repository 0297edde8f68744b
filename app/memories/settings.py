"""The settings of memories. Pure."""

from pydantic import Field

from app.knowledge.settings import LearningSettings
from app.memories.decay import HALF_LIFE_DAYS
from app.memories.dedupe import DEDUPE_THRESHOLD


class MemorySettings(LearningSettings):
    """Long-term memories: sentences that fade."""

    enabled: bool = Field(
        True,
        description="Whether memories may be learnt from the conversation. Existing ones can always be read.",
    )
    half_life_days: float = Field(
        HALF_LIFE_DAYS, ge=0.01, le=36_500, description="In how many days the strength of a memory halves."
    )
    max_memories: int = Field(
        1_000,
        ge=1,
        le=100_000,
        description="How many memories stay out of the archive: the strongest ones.",
    )
    forget_below: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Memories with a strength below this number are in the archive; null sets no limit.",
    )
    dedupe_threshold: float = Field(
        DEDUPE_THRESHOLD,
        ge=0,
        le=1,
        description="A learnt sentence replaces the text of a memory if their similarity is above this number. The "
        "similarity is the share of three-letter groups that both have. A person's text, or a text with other names, "
        "is never replaced.",
    )
