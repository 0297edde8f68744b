"""The request and response models of memories."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.chats.settings import Scope
from app.kit.wire import NullAs, Patch, RequestModel, Text, absent
from app.knowledge.descriptions import CHARACTER, SCOPE, SOURCES
from app.layers.derived import EDITED, ORIGIN, Origin
from app.memories.memory import DEFAULT_IMPORTANCE, Category

MAX_CONTENT_CHARS = 2_000
MAX_TAGS = 20
MAX_TAG_CHARS = 50

Content = Annotated[Text, Field(min_length=1, max_length=MAX_CONTENT_CHARS, pattern=r"\S")]
Importance = Annotated[float, Field(ge=0, le=1)]
Tag = Annotated[Text, Field(min_length=1, max_length=MAX_TAG_CHARS, pattern=r"\S")]
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS)]

_CONTENT = "The memory, best one sentence."
_CATEGORY = "The subject; null if it has none of these subjects."
_IMPORTANCE = f"From 0 to 1; null is {DEFAULT_IMPORTANCE}."
_TAGS = "Short words; null is none."


class MemoryIn(RequestModel):
    """A memory that a person writes."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "content": "Mira's brother Tomas is a ferryman.",
                    "category": "personal",
                    "importance": 0.8,
                    "tags": ["family"],
                }
            ]
        }
    )

    content: Content = Field(description=_CONTENT)
    category: Category | None = Field(None, description=_CATEGORY)
    importance: Annotated[Importance, NullAs(DEFAULT_IMPORTANCE)] = Field(DEFAULT_IMPORTANCE, description=_IMPORTANCE)
    tags: Annotated[Tags, NullAs([])] = Field([], description=_TAGS)


class MemoryPatch(Patch):
    """Changes of a memory."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "Mira's brother Tomas was a ferryman."}]})

    content: Content = Field(
        default_factory=absent,
        description="The new text. The former one stays in the memory's history.",
    )
    category: Category | None = Field(None, description=_CATEGORY)
    importance: Annotated[Importance, NullAs(DEFAULT_IMPORTANCE)] = Field(DEFAULT_IMPORTANCE, description=_IMPORTANCE)
    tags: Annotated[Tags, NullAs([])] = Field([], description=_TAGS)
    pinned: Annotated[bool, NullAs(False)] = Field(
        False, description="Keep it out of the archive, whatever its age and the number of memories. Null is false."
    )
    archived: bool | None = Field(
        None,
        description="True moves it to the archive, false brings it back for good. With null, its strength decides.",
    )


class MemoryOut(BaseModel):
    """A memory."""

    id: UUID = Field(description="The memory's id, which stays the same when its text changes.")
    content: str = Field(description="The text.")
    category: Category | None = Field(description=_CATEGORY)
    importance: float = Field(description="From 0 to 1.")
    tags: list[str] = Field(description="Short words.")
    scope: Scope = Field(description=SCOPE)
    character: str | None = Field(description=CHARACTER)
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=EDITED)
    session_id: UUID | None = Field(
        description="The session of the newest message that it was learnt from, possibly of another chat."
    )
    sources: list[str] = Field(description=SOURCES)
    pinned: bool = Field(
        description="Whether it stays out of the archive, whatever its age and the number of memories."
    )
    archived: bool = Field(description="Whether it is in the archive.")
    score: float = Field(
        description="Its strength: the importance, halved every `memories.half_life_days` days. Its age is counted "
        "from `said_at` to the chat's newest message; in the lists of wider scopes, from `said_at` to the present."
    )
    said_at: datetime = Field(
        description="The time of the newest message that it was learnt from. If a person wrote the text and no message "
        "has said it since: the time when it was written."
    )
    created_at: datetime = Field(description="When the text was learnt or written.")


class MemoryTextOut(BaseModel):
    """A text that a memory has or had."""

    id: UUID = Field(description="The id of the text.")
    content: str | None = Field(description="The text; null if the item records that the memory was forgotten.")
    scope: Scope = Field(description="The scope of the text.")
    character: str | None = Field(description=CHARACTER)
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=EDITED)
    created_at: datetime = Field(description="From when on the memory had this text.")
    held_until: datetime | None = Field(description="When the next text of the same scope replaced it; null if none.")
