"""What goes over the wire about diaries."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import Given, Name, Text
from app.layers.derived import EDITED, IN_PROMPT, ORIGIN, Origin

MAX_ENTRY_CHARS = 4_000

EntryText = Annotated[Text, Field(min_length=1, max_length=MAX_ENTRY_CHARS, pattern=r"\S")]


class EntryOut(BaseModel):
    """An entry in the diary of a character."""

    id: UUID = Field(description="Its id.")
    character: str | None = Field(description="Whose diary it is in; null in a chat that names no characters.")
    content: str = Field(description="What is written.")
    at_seq: int = Field(description="The newest message when it was written; 0 before the first.")
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=f"{EDITED} No model rewrites it any more.")
    stale: bool = Field(description="Whether the messages that the service wrote it from have changed since.")
    first_seq: int | None = Field(description="The first message that the service wrote it from; else null.")
    last_seq: int | None = Field(description="The last one, inclusive.")
    in_prompt: bool = Field(
        description="Whether a context for its character contains it word for word, unless a small `max_tokens` trims "
        "it; false if the chat does not name the character any more."
    )
    model: str | None = Field(description="The model that wrote it for the service.")
    prompt_version: str | None = Field(description="The prompt it was written with.")
    dated_at: datetime = Field(
        description="When it is written in the story, shown as a day of the chat's time zone: "
        "a character writes when the newest message was sent, a person today."
    )
    created_at: datetime = Field(description="When it was written.")


class EntryIn(Given):
    """An entry that a person writes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"content": "Mira asked for my name before she asked for the way."}]},
    )

    content: EntryText = Field(description="In the character's words.")
    character: Name | None = Field(
        None,
        description="Whose diary; not needed where only one character is named, or none. "
        "In a chat that names none every name has a diary of its own, up to 32.",
    )


class EntryPatch(Given):
    """What to change of an entry."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"content": "Mira asked for my name. Nobody does that."}]}
    )

    content: EntryText = Field(description="Replaces the words; no model rewrites them.")


class FoldedOut(BaseModel):
    """The older part of a diary, folded; before the first fold its version is null and its text empty."""

    character: str | None = Field(description="Whose diary; null in a chat that names no characters.")
    version: int | None = Field(description="Its number, from 1; null where nothing has been folded yet.")
    text: str = Field(description="The whole text, in the character's voice.")
    entries: int = Field(description="How many entries it tells of, at most 1,000; all of them are still there.")
    first_at: datetime | None = Field(description="When the first of them was written.")
    last_at: datetime | None = Field(description="When the last of them was written.")
    in_prompt: bool = Field(description=IN_PROMPT)
    origin: Origin | None = Field(description=ORIGIN)
    model: str | None = Field(description="The model that made it.")
    prompt_version: str | None = Field(description="The prompt it was made with.")
    created_at: datetime | None = Field(description="When it was made.")
