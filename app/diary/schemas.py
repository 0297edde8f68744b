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
    character: str | None = Field(
        description="The character whose diary it is in; null for the unnamed diary of a chat that names no characters."
    )
    content: str = Field(description="The text.")
    at_seq: int = Field(
        description="The seq at which the entry belongs in the story. For an entry of a tool: the seq of the reply, "
        "once the reply is appended. For an entry of the service: the seq of the last message that the entry is about. "
        "Otherwise: the seq of the newest message when the entry was written, or 0 if there was none."
    )
    message_id: str | None = Field(
        description="For an entry of a tool: the id of the reply that the entry belongs to; null until the reply is "
        "appended, unless the call named it. Unless a person keeps or edits the entry, a context contains it only "
        "while this reply has the text that the entry was bound to, and is not deleted or hidden by a person. "
        "Otherwise the entry is only listed. Always null for an entry that no tool wrote."
    )
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=f"{EDITED} No model rewrites it afterwards.")
    kept: bool = Field(
        description="Whether a person has decided to keep the entry. It then no longer depends on a reply."
    )
    stale: bool = Field(description="Whether the messages that the service wrote it from have changed since.")
    first_seq: int | None = Field(
        description="The seq of the first message that the service wrote it from; null if the service did not write it."
    )
    last_seq: int | None = Field(
        description="The seq of the last of these messages, inclusive; null if the service did not write the entry."
    )
    in_prompt: bool = Field(
        description="Whether a context for its character contains it verbatim, unless a small `max_tokens` trims it. "
        "False, for example, if the chat no longer names the character, or if the entry's reply is missing, changed, "
        "or hidden by a person (see `message_id`)."
    )
    model: str | None = Field(description="The model with which the service wrote it.")
    prompt_version: str | None = Field(description="The version of the prompt it was written with.")
    dated_at: datetime = Field(
        description="The time in the story, shown as a date in the chat's time zone. For an entry of the character: "
        "when its reply was sent. For an entry of the service: when the newest message that it is about was sent. "
        "For an entry of a person: when it was written."
    )
    created_at: datetime = Field(description="When it was written.")


class SharedEntryOut(BaseModel):
    """An entry in the diary of a character of the chat, from another chat of the same user."""

    id: UUID = Field(description="The entry's id, in the other chat.")
    chat_id: str = Field(description="The other chat.")
    character: str = Field(description="The character whose diary it is in.")
    content: str = Field(description="The text.")
    origin: Origin = Field(description=ORIGIN)
    in_prompt: bool = Field(
        description="Whether a context of this chat for the character contains it, unless a small `max_tokens` trims "
        "it."
    )
    dated_at: datetime = Field(description="The time in the other chat's story.")
    created_at: datetime = Field(description="When it was written. The entries of all chats are sorted by this time.")


class EntryIn(RequestModel):
    """An entry that a person writes."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"content": "Mira asked for my name before she asked for the way."}]},
    )

    content: EntryText = Field(description="The text, in the character's words.")
    character: Name | None = Field(
        None,
        description="The character whose diary it is; required unless the chat has exactly one active character or no "
        "list of characters. In a chat without such a list, each name that is sent here has a diary of its own, up to "
        "32.",
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
        description="Keep an entry that a tool wrote, even if its reply is changed, deleted, or hidden by a person. "
        "`false` or null makes the entry depend on the reply again; the answer is a 409 if the reply never came or is "
        "no longer on the line. If the service wrote the current text, the answer is always a 409.",
    )


class FoldedOut(BaseModel):
    """The folded part of a diary; `version` is null and `text` empty while no version is valid."""

    character: str | None = Field(
        description="The character whose diary it is; null for the unnamed diary of a chat that names no characters."
    )
    version: int | None = Field(
        description="The number of the latest valid version, from 1; null before the first fold, and while a change of "
        "folded entries makes all versions invalid."
    )
    text: str = Field(description="The whole text, in the character's voice.")
    entries: int = Field(
        description="The number of entries that it covers, counted up to 1,000. They are still listed."
    )
    first_at: datetime | None = Field(description="When the first of these entries was written.")
    last_at: datetime | None = Field(description="When the last of these entries was written.")
    in_prompt: bool = Field(description=IN_PROMPT)
    origin: Origin | None = Field(description=ORIGIN)
    model: str | None = Field(description="The model that generated it.")
    prompt_version: str | None = Field(description="The version of the prompt it was generated with.")
    refusals: list[RefusalOut] = Field(description=REFUSALS)
    created_at: datetime | None = Field(description="When it was generated.")


class RegenerateFolded(RequestModel):
    """Which diary's newest fold to make again."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"character": "Kai"}]})

    character: Name | None = Field(
        None,
        description="The character whose diary it is; required unless the chat has one active character or names none.",
    )


class RegeneratingFolded(FoldedOut):
    """The version that is in use while the newest fold is made again."""

    work_id: UUID = Field(description=WORK_ID)
