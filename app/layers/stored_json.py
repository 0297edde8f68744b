"""Types that describe stored JSON, such as the cursors of a line, so that an import can check it. Pure."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MAX_STORED = 1_000_000_000
"""The largest number that an import accepts: what is counted on from it still fits the column of an integer."""


class StoredJson(BaseModel):
    """The base of stored JSON objects: unknown fields are rejected, and no value is converted to another type."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _is_time(text: str) -> str:
    at = datetime.fromisoformat(text)
    if not text.isprintable():  # any character can separate the time from the day
        raise ValueError("must be a time")
    if at.tzinfo is None:
        raise ValueError("must have a time zone")
    return text


def _is_uuid(text: str) -> str:
    UUID(text)
    return text


Number = Annotated[int, Field(ge=0, le=MAX_STORED)]
"""A seq, a number or a count."""

IsoTime = Annotated[str, AfterValidator(_is_time)]
"""A time with its time zone, as text."""

UuidText = Annotated[str, AfterValidator(_is_uuid)]
