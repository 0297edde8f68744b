"""The request and response models of memos."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.kit.validation_errors import FieldError
from app.kit.wire import MAX_SEQ, WORK_ID, Patch, Text, absent
from app.layers.derived import EDITED, IN_PROMPT, ORIGIN, REFUSALS, Origin, RefusalOut

MAX_MEMO_CHARS = 20_000

MemoText = Annotated[Text, Field(min_length=1, max_length=MAX_MEMO_CHARS, pattern=r"\S")]


class HighlightOut(BaseModel):
    """One highlight of a memo."""

    category: Literal["relationship", "milestone", "keepsake", "turning_point"] | None = Field(
        description="The kind of event, or null if none was named."
    )
    text: str = Field(description="One factual sentence.")


class MemoOut(BaseModel):
    """A memo of the memo book."""

    id: UUID = Field(description="The memo's id.")
    number: int = Field(description="Its number in the book, which never changes.")
    first_seq: int | None = Field(description="The seq of the first message it covers, or null.")
    last_seq: int | None = Field(description="The seq of the last message it covers, inclusive, or null.")
    after_seq: int | None = Field(description="The seq that it follows, if it covers no messages.")
    first_message_id: str | None = Field(description="The id of the first message that it summarises, or null.")
    status: Literal["pending", "ready", "empty", "failed"] = Field(
        description="`empty`: the messages contain nothing memorable. `failed`: `regenerate` tries again."
    )
    stale: bool = Field(description="Whether its messages have changed since it was made.")
    origin: Origin = Field(description=f"{ORIGIN} `model` until there is a text.")
    highlights: list[HighlightOut] = Field(description="At most three highlights, or the lines that a person wrote.")
    text: str = Field(description="The text; the prompt shows it with its date.")
    in_prompt: bool = Field(description=IN_PROMPT)
    pinned: bool = Field(
        description="Whether it stays in the prompt when it is older than the window (`memos.window`)."
    )
    edited: bool = Field(description=EDITED)
    error: str | None = Field(description="Why the last attempt failed.")
    attempts: int = Field(description="The number of attempts.")
    model: str | None = Field(description="The model that generated it.")
    prompt_version: str | None = Field(description="The version of the prompt.")
    refusals: list[RefusalOut] = Field(description=REFUSALS)
    created_at: datetime = Field(description="When its batch was formed, or when a person wrote it.")


class RegeneratingMemo(MemoOut):
    """A memo that is being regenerated."""

    work_id: UUID = Field(description=WORK_ID)


class MemoIn(BaseModel):
    """A memo that a person writes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "They once drove to the sea at night, before any of this began."}]},
    )

    text: MemoText = Field(description="The text. Each line that is not blank is a highlight.")
    after_seq: Annotated[int, Field(ge=0, le=MAX_SEQ)] | None = Field(
        None, description="The seq of the message that it follows in the book; by default the newest."
    )


class MemoPatch(Patch):
    """Changes to a memo; absent fields stay as they are."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Kai gave Mira the brass key.", "pinned": True}]}
    )

    text: MemoText = Field(
        default_factory=absent,
        description="The new text. A generated one replaces it only after `regenerate` with `replace_edited: true`.",
    )
    pinned: bool | None = Field(
        None, description="Whether it stays in the prompt when it is older than the window. Null is false."
    )


class Backfill(BaseModel):
    """The range of messages to backfill."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"first_seq": 1, "last_seq": 400}]})

    first_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(1, description="The first seq of the range.")
    last_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] | None = Field(
        None, description="The last seq of the range; by default the newest message."
    )

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.last_seq is not None and self.last_seq < self.first_seq:
            raise FieldError(("last_seq",), "must be at least first_seq")
        return self


class BackfilledOut(BaseModel):
    """No memo was missing: the backfill added nothing."""

    created: int = Field(description="How many memos were added.")
    first_seq: int | None = Field(description="The first seq that the memos cover; null if none was added.")
    last_seq: int | None = Field(description="The last seq that the memos cover; null if none was added.")


class BackfillingOut(BackfilledOut):
    """The memos that a backfill makes in the background."""

    work_id: UUID = Field(description=f"{WORK_ID} It belongs to the first of the memos.")


class Regenerate(BaseModel):
    """How to regenerate a memo."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"instruction": "Mention the brass key."}]}
    )

    instruction: Annotated[Text, Field(min_length=1, max_length=2_000)] | None = Field(
        None, description="An instruction for this memo only."
    )
    replace_edited: bool = Field(False, description="Whether to replace a person's text.")
