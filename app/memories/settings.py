"""The settings of memories. Pure."""

from pydantic import Field

from app.knowledge.settings import LearningSettings
from app.memories.decay import HALF_LIFE_DAYS
from app.memories.dedupe import DEDUPE_THRESHOLD


class MemorySettings(LearningSettings):
    """Long-term memories: sentences whose importance fades."""

    enabled: bool = Field(
        True,
        description="Whether memories may be learnt from the conversation. Those that exist can be read in either "
        "case.",
    )
    half_life_days: float = Field(
        HALF_LIFE_DAYS, ge=0.01, le=36_500, description="In how many days the importance of a memory halves."
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
        description="Memories whose strength is below this number are in the archive. Null, the default, is no limit. "
        "Without a `query`, recall also leaves out memories that are older than a half-life and weaker than twice this "
        "number. The preset `decay` has 0.05: a memory with the default importance of 0.5 is then recalled for 16 "
        "days, and is in the archive after 23.",
    )
    dedupe_threshold: float = Field(
        DEDUPE_THRESHOLD,
        ge=0,
        le=1,
        description="If the similarity of a learnt sentence and a known memory is above this number, the sentence "
        "replaces the text of the memory. Exceptions: a person wrote that text, or the two have different names, such "
        "as “Ida” and “Eva”, or the same names in another order. Similarity is the share of three-letter groups that "
        "both have, from 0 to 1.",
    )
