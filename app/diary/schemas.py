"""The request and response models of diaries."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import Name, Patch, RequestModel, Text, absent
from app.layers.derived import EDITED, IN_PROMPT, ORIGIN, Origin

MAX_ENTRY_CHARS = 4_000

EntryText = Annotated[Text, Field(min_length=1, max_length=MAX_ENTRY_CHARS, pattern=r"\S")]


class EntryOut(BaseModel):
    """An entry in the diary of a character."""

    id: UUID = Field(description="The entry's id.")
    character: str | None = Field(
        description="The character whose diary it is in; null for the unnamed diary of a chat that names no characters."
    )
    content: str = Field(description="The text.")
    at_seq: int = Field(
        description="The seq of the newest message when it was written, 0 before the first. For an entry that a tool "
        "wrote, the seq of its reply once that is appended; for one of the service, that of the last message that "
        "it is about."
    )
    message_id: str | None = Field(
        description="The id of the reply that a tool wrote it with. A context contains the entry only while this "
        "message has the text that it had then: after an edit, another swipe, a delete, or if a person hid the "
        "message, the entry is still listed but `in_prompt` is false, until the text returns. Null if no tool wrote "
        "it, and until the reply is appended, unless the call named the id of the reply. Until the reply is appended, "
        "`in_prompt` is false."
    )
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=f"{EDITED} No model rewrites it afterwards.")
    kept: bool = Field(
        description="Whether a person keeps it, so that it no longer depends on the reply that a tool wrote it with."
    )
    stale: bool = Field(description="Whether the messages that the service wrote it from have changed since.")
    first_seq: int | None = Field(
        description="The seq of the first message that the service wrote it from; null if the service did not write it."
    )
    last_seq: int | None = Field(description="The seq of the last message, inclusive; null likewise.")
    in_prompt: bool = Field(
        description="Whether a context for its character contains it verbatim, unless a small `max_tokens` trims it; "
        "false if the chat no longer names the character, and while the reply of its tool call is not there."
    )
    model: str | None = Field(description="The model with which the service wrote it.")
    prompt_version: str | None = Field(description="The version of the prompt it was written with.")
    dated_at: datetime = Field(
        description="The time in the story, shown as a date in the chat's time zone: for an entry of a "
        "character, when the newest message at that time was sent; for one of the service, when the newest message "
        "that it is about was sent; for a person's, when it was written."
    )
    created_at: datetime = Field(description="When it was written.")


class EntryIn(RequestModel):
    """An entry that a person writes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"content": "Mira asked for my name before she asked for the way."}]},
    )

    content: EntryText = Field(description="The text, in the character's words.")
    character: Name | None = Field(
        None,
        description="The character whose diary it is; required unless the chat has one active character or names "
        "none. In a chat that names none, each name has a diary of its own, up to 32.",
    )


class EntryPatch(Patch):
    """Changes to an entry: a field that is left out keeps its value, null resets it; `content` cannot be null."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"content": "Mira asked for my name. Nobody does that.", "kept": True}]},
    )

    content: EntryText = Field(
        default_factory=absent,
        description="The new text. No model rewrites it afterwards, and it no longer depends on a reply.",
    )
    kept: bool | None = Field(
        None,
        description="Keep an entry that a tool wrote, whatever becomes of the reply that it was written with. `false` "
        "or null makes it depend on the reply again. An entry that the service wrote is a 409.",
    )


class FoldedOut(BaseModel):
    """The folded part of a diary; before the first fold, `version` is null and `text` is empty."""

    character: str | None = Field(
        description="The character whose diary it is; null for the unnamed diary of a chat that names no characters."
    )
    version: int | None = Field(description="The number of the version, from 1; null before the first fold.")
    text: str = Field(description="The whole text, in the character's voice.")
    entries: int = Field(
        description="The number of entries that it covers, counted up to 1,000. They are still listed."
    )
    first_at: datetime | None = Field(description="When the first of them was written.")
    last_at: datetime | None = Field(description="When the last of them was written.")
    in_prompt: bool = Field(description=IN_PROMPT)
    origin: Origin | None = Field(description=ORIGIN)
    model: str | None = Field(description="The model that generated it.")
    prompt_version: str | None = Field(description="The version of the prompt it was generated with.")
    created_at: datetime | None = Field(description="When it was generated.")
