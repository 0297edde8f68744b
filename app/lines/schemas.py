"""Request and response schemas of lines."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.validation_errors import CHAT_ID_PATTERN
from app.kit.wire import MAX_SEQ, RequestModel, SegmentText

CheckpointName = Annotated[SegmentText, Field(min_length=1, max_length=100)]


class CheckpointIn(RequestModel):
    """A checkpoint to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "before the storm"}]})

    name: CheckpointName = Field(description="Its name; it must be unique in the chat.")


class CheckpointOut(BaseModel):
    """A frozen copy of a line."""

    name: str = Field(description="Its name.")
    line: UUID = Field(description="The id of its line: pass it as `line` to read it.")
    head_seq: int = Field(description="The highest seq so far, even of a deleted message; 0 if there is none.")
    messages: int = Field(description="The number of messages, without deleted ones.")
    created_at: datetime = Field(description="When it was created.")


class LineOut(BaseModel):
    """A line: one course of the chat."""

    line: UUID = Field(description="The line's id.")
    current: bool = Field(description="Whether messages are appended to this line.")
    parent: UUID | None = Field(description="The line that it was copied from, which may be a checkpoint's.")
    head_seq: int = Field(description="The highest seq so far, even of a deleted message; 0 if there is none.")
    messages: int = Field(description="The number of messages, without deleted ones.")
    created_at: datetime = Field(description="When it was created.")
    last_active_at: datetime = Field(description="When messages were last appended, or the chat was created or forked.")


class CurrentLine(BaseModel):
    """The line that is current now."""

    line: UUID = Field(description="The line's id.")


class ForkIn(RequestModel):
    """A chat to create from this one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"chat_id": "lighthouse-2", "at_seq": 2}]})

    chat_id: Annotated[str, Field(pattern=CHAT_ID_PATTERN)] = Field(description="The new chat's id; it must be unused.")
    at_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] | None = Field(
        None, description="The seq of the last message to copy; by default the newest."
    )
