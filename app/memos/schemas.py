"""What goes over the wire about memos."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import MAX_SEQ, WORK_ID, Patch, Text, absent
from app.layers.derived import EDITED, IN_PROMPT, ORIGIN, Origin

MAX_MEMO_CHARS = 20_000

MemoText = Annotated[Text, Field(min_length=1, max_length=MAX_MEMO_CHARS, pattern=r"\S")]


class HighlightOut(BaseModel):
    """One highlight of a memo."""

    category: Literal["relationship", "milestone", "keepsake", "turning_point"] | None = Field(
        description="What kind of event it is, where the model said so."
    )
    text: str = Field(description="One factual sentence.")


class MemoOut(BaseModel):
    """A memo of the book."""

    id: UUID = Field(description="Its id.")
    number: int = Field(description="Its number in the book; it never changes.")
    first_seq: int | None = Field(description="The first message it covers; null for a person's own.")
    last_seq: int | None = Field(description="The last message it covers, inclusive.")
    after_seq: int | None = Field(description="For a person's own: the seq it stands after; else null.")
    first_message_id: str | None = Field(description="The id of the first message: one step to the conversation.")
    status: Literal["pending", "ready", "empty", "failed"] = Field(
        description="`empty`: nothing memorable was said. `failed`: tried often enough; regenerate tries again."
    )
    stale: bool = Field(description="Whether its messages have changed since it was made.")
    origin: Origin = Field(description=f"{ORIGIN} `model` until there is a text.")
    highlights: list[HighlightOut] = Field(description="Two or three highlights, or what a person wrote, by line.")
    text: str = Field(description="As it stands in the prompt.")
    in_prompt: bool = Field(description=IN_PROMPT)
    pinned: bool = Field(description="Whether it stays in the prompt beside the window.")
    edited: bool = Field(description=EDITED)
    error: str | None = Field(description="Why it could not be made yet.")
    attempts: int = Field(description="How often it was tried.")
    model: str | None = Field(description="The model that made it.")
    prompt_version: str | None = Field(description="The prompt it was made with.")
    created_at: datetime = Field(description="When its batch was full, or it was written.")


class RegeneratingMemo(MemoOut):
    """A memo that is made again."""

    work_id: UUID = Field(description=WORK_ID)


class MemoIn(BaseModel):
    """A memory that a person writes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "They once drove to the sea at night, before any of this began."}]},
    )

    text: MemoText = Field(description="In the person's own words.")
    after_seq: Annotated[int, Field(ge=0, le=MAX_SEQ)] | None = Field(
        None, description="Which message it stands after; the newest if not given."
    )


class MemoPatch(Patch):
    """What to change of a memo: an absent field stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Kai gave Mira the brass key.", "pinned": True}]}
    )

    text: MemoText = Field(
        default_factory=absent, description="Replaces the text; no model rewrites it unless `regenerate` asks for it."
    )
    pinned: bool | None = Field(None, description="Keep it in the prompt beside the window. Null is false.")


class Regenerate(BaseModel):
    """How to make a memo again."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"instruction": "Mention the brass key."}]}
    )

    instruction: Annotated[Text, Field(min_length=1, max_length=2_000)] | None = Field(
        None, description="A wish for this one time."
    )
    replace_edited: bool = Field(False, description="Whether a person's edit may be overwritten.")
