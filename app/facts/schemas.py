"""The request and response models of facts."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.chats.settings import Scope
from app.facts.keys import MAX_KEY_CHARS
from app.kit.wire import RequestModel, SegmentText, Text
from app.knowledge.descriptions import CHARACTER, SCOPE, SOURCES
from app.layers.derived import EDITED, ORIGIN, Origin

MAX_VALUE_CHARS = 2_000


def _trimmed(key: str) -> str:
    if key != key.strip():
        raise ValueError("must not begin or end with white space")
    return key


FactKey = Annotated[SegmentText, AfterValidator(_trimmed), Field(min_length=1, max_length=MAX_KEY_CHARS)]
FactValue = Annotated[Text, Field(min_length=1, max_length=MAX_VALUE_CHARS, pattern=r"\S")]


class FactIn(RequestModel):
    """The value of a fact."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": "Mira's brother is called Tomas."}]})

    value: FactValue = Field(description="The value.")


class FactOut(BaseModel):
    """A fact with the value that holds."""

    id: UUID = Field(description="The id of this value; each new value has another one.")
    key: str = Field(description="The key.")
    value: str = Field(description="The value.")
    scope: Scope = Field(description=SCOPE)
    character: str | None = Field(description=CHARACTER)
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=EDITED)
    category: str | None = Field(
        description="The subject, if the fact was learnt and has one: `personal`, `preference`, `goal`, `context`, "
        "`relationship` or `technical`."
    )
    importance: float | None = Field(description="From 0 to 1; null if the fact was not learnt, or has none.")
    tags: list[str] = Field(description="Short words; empty if the fact was not learnt, or has none.")
    sources: list[str] = Field(description=SOURCES)
    created_at: datetime = Field(description="When it was set or learnt.")


class FactValueOut(BaseModel):
    """A value that a key has or had."""

    id: UUID = Field(description="Its id.")
    value: str | None = Field(description="The value; null if the fact was deleted or forgotten.")
    scope: Scope = Field(description="Its scope.")
    character: str | None = Field(description=CHARACTER)
    origin: Origin = Field(description=ORIGIN)
    edited: bool = Field(description=EDITED)
    created_at: datetime = Field(description="When it was set or learnt.")
    held_until: datetime | None = Field(description="When the next value of the same scope replaced it; null if none.")
