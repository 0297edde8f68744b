"""The request and response models of diaries."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.kit.wire import WORK_ID, Name, Patch, RequestModel, Text, absent
from app.layers.derived import EDITED, IN_PROMPT, ORIGIN, REFUSALS, Origin, RefusalOut

MAX_ENTRY_CHARS = 4_000

EntryText = Annotated[Text, Field(min_length=1, max_length=MAX_ENTRY_CHARS, pattern=r"\S")]


class EntryOut(BaseModel):
    """An entry in the diary of a character."""

    id: UUID = Field(description="The entry's id.")
    character: str | None = Field(description="The character whose diary it is in; null if it has no name.")
    content: str = Field(description="The text.")
    at_seq: int = Field(
        description="Where it belongs in the story: the seq of its reply, or else of the last message that it is "
        "about. For an entry without either, the newest seq when it was written, or 0."
    )
    message_id: str | None = Field(
        description="The reply of an entry that a tool wrote; null until the reply is appended, unless the call sent "
        "its id. Contexts contain the entry only while the reply has the same text, and is neither deleted nor "
        "hidden by a person. An entry that a person keeps or edits does not depend on the reply."
    )
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=f"{EDITED} No model rewrites it afterwards.")
    kept: bool = Field(description="Whether a person keeps the entry, so that it no longer depends on a reply.")
    stale: bool = Field(description="Whether the messages that the service wrote it from have changed since.")
    first_seq: int | None = Field(description="The seq of the first message that the service wrote it from, or null.")
    last_seq: int | None = Field(description="The seq of the last of these messages, inclusive, or null.")
    in_prompt: bool = Field(
        description="Whether a context for its character contains it verbatim, unless a small `max_tokens` trims it."
    )
    model: str | None = Field(description="The model with which the service wrote it.")
    prompt_version: str | None = Field(description="The version of the prompt.")
    dated_at: datetime = Field(
        description="The time in the story: when its reply or the newest message that it is about was sent; for an "
        "entry of a person, when it was written."
    )
    created_at: datetime = Field(description="When it was written.")


class SharedEntryOut(BaseModel):
    """An entry in a character's diary, from another chat of the same user."""

    id: UUID = Field(description="The entry's id, in the other chat.")
    chat_id: str = Field(description="The other chat.")
    character: str = Field(description="The character whose diary it is in.")
    content: str = Field(description="The text.")
    origin: Origin = Field(description=ORIGIN)
    in_prompt: bool = Field(
        description="Whether this chat's contexts for the character contain it, unless a small `max_tokens` trims it."
    )
    dated_at: datetime = Field(description="The time in the other chat's story.")
    created_at: datetime = Field(description="When it was written. The list is sorted by this time.")


class EntryIn(RequestModel):
    """An entry that a person writes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"content": "Mira asked for my name before she asked for the way."}]},
    )

    content: EntryText = Field(description="The text, in the character's words.")
    character: Name | None = Field(
        None,
        description="The character whose diary it is; by default the chat's only character that is not disabled. In a "
        "chat without a list of characters, each name has a diary of its own, up to 32.",
    )


class EntryPatch(Patch):
    """Changes to an entry: a field that is left out keeps its value, null resets it; `content` cannot be null."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"content": "Mira asked for my name. Nobody does that.", "kept": True}]},
    )

    content: EntryText = Field(
        default_factory=absent,
        description="The new text. No model rewrites it afterwards, and the entry no longer depends on a reply.",
    )
    kept: bool | None = Field(
        None,
        description="True keeps an entry that a tool wrote, whatever happens to its reply. False or null makes it "
        "depend on the reply again; if the reply never came or is no longer on the line, the answer is a 409. For an "
        "entry whose present text the service wrote, any value is a 409.",
    )


class FoldedOut(BaseModel):
    """The folded part of a diary; `version` is null and `text` empty while no version is valid."""

    character: str | None = Field(description="The character whose diary it is; null if it has no name.")
    version: int | None = Field(description="The number of the latest valid version, from 1.")
    text: str = Field(description="The text, in the character's voice.")
    entries: int = Field(description="The number of entries that it covers; at most 1,000 are counted.")
    first_at: datetime | None = Field(description="When the first of these entries was written.")
    last_at: datetime | None = Field(description="When the last of these entries was written.")
    in_prompt: bool = Field(description=IN_PROMPT)
    origin: Origin | None = Field(description=ORIGIN)
    model: str | None = Field(description="The model that generated it.")
    prompt_version: str | None = Field(description="The version of the prompt.")
    refusals: list[RefusalOut] = Field(description=REFUSALS)
    created_at: datetime | None = Field(description="When it was generated.")


class RegenerateFolded(RequestModel):
    """The diary whose newest fold to make again."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"character": "Kai"}]})

    character: Name | None = Field(
        None,
        description="The character whose diary it is. May be left out if the chat lists no characters, or exactly one "
        "that is not disabled.",
    )


class RegeneratingFolded(FoldedOut):
    """The version that is in use while the newest fold is made again."""

    work_id: UUID = Field(description=WORK_ID)
