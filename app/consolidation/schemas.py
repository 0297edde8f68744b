"""Request and response models of consolidation."""

from typing import Annotated, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.kit.validation_errors import FieldError
from app.kit.wire import MAX_SEQ, WORK_ID, RequestModel


class LearnAgain(RequestModel):
    """The messages from which to learn again."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"first_seq": 1, "last_seq": 400}]})

    first_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(1, description="The seq of the first message.")
    last_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] | None = Field(
        None, description="The seq of the last message, inclusive; by default the newest."
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.last_seq is not None and self.last_seq < self.first_seq:
            raise FieldError(("last_seq",), "must be at least first_seq")
        return self


class NothingLearntAgain(BaseModel):
    """Nothing is learnt again, because no messages were read without the model."""

    ranges: int = Field(description="How many ranges of messages are read again.")
    first_seq: int | None = Field(description="The first seq of these ranges, or null.")
    last_seq: int | None = Field(description="The last seq of these ranges, or null.")


class LearningAgain(NothingLearntAgain):
    """The ranges that are read again in the background."""

    work_id: UUID = Field(description=f"{WORK_ID} It belongs to the first of the ranges.")
