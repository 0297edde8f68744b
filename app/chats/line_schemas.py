"""What goes over the wire about lines."""

from datetime import datetime
from typing import Annotated
from unicodedata import category
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.kit.wire import CHAT_ID_PATTERN, MAX_SEQ, Given, Text


def _fits_a_path(name: str) -> str:
    if "/" in name:
        raise ValueError("may not contain a slash: the name stands in paths")
    if name in (".", ".."):
        raise ValueError("may not be a dot or two: they mean other places in a path")
    if any(category(character) == "Cc" for character in name):
        raise ValueError("may not contain control characters")
    if not name.strip():
        raise ValueError("may not be only white space")
    return name


CheckpointName = Annotated[Text, Field(min_length=1, max_length=100), AfterValidator(_fits_a_path)]


class CheckpointIn(Given):
    """A checkpoint to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "before the storm"}]})

    name: CheckpointName = Field(description="What to call it; unique in the chat.")


class CheckpointOut(BaseModel):
    """A frozen copy of a line."""

    name: str = Field(description="What it is called.")
    line: UUID = Field(description="Its line: give it as `line` to read what it holds.")
    head_seq: int = Field(description="The newest seq in it; 0 for an empty one.")
    messages: int = Field(description="Messages in it, without deleted ones.")
    created_at: datetime = Field(description="When it was made.")


class LineOut(BaseModel):
    """One course of the chat."""

    line: UUID = Field(description="Its id: give it as `line` to read it.")
    current: bool = Field(description="Whether it is the one that is appended to.")
    parent: UUID | None = Field(description="The line that it was copied from, also a checkpoint's.")
    head_seq: int = Field(description="Its newest seq; 0 for an empty one.")
    messages: int = Field(description="Messages on it, without deleted ones.")
    created_at: datetime = Field(description="When it was made.")
    last_active_at: datetime = Field(description="When something was appended to it last.")


class CurrentLine(BaseModel):
    """Which line is the current one now."""

    line: UUID = Field(description="The current line.")


class ForkIn(Given):
    """A chat to make from this one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"chat_id": "lighthouse-2", "at_seq": 2}]})

    chat_id: Annotated[str, Field(pattern=CHAT_ID_PATTERN)] = Field(description="The new chat's id; it must be free.")
    at_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] | None = Field(
        None, description="The last message that the new chat has; all of them unless given."
    )
