"""Pages by keyset: a cursor is the last row's sort key, so a page costs the same at any depth."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

import orjson
from fastapi import Query
from pydantic import BaseModel, Field

from app.kit.errors import Invalid

Item = TypeVar("Item")

DEFAULT_LIMIT = 50
MAX_LIMIT = 500

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="How many items a page holds at most.")]
Cursor = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the page before.")]


class Page(BaseModel, Generic[Item]):
    """One page of a list."""

    items: list[Item] = Field(description="The items, in the list's order.")
    next_cursor: str | None = Field(description="Give it as `cursor` for the next page; null on the last.")


def encode_cursor(*key: Any) -> str:
    """An opaque cursor of a sort key (numbers, strings, times, uuids)."""
    # asyncpg's UUIDs are of a kind of their own, which orjson leaves to `default`.
    return urlsafe_b64encode(orjson.dumps(key, default=str)).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """The sort key of a cursor: one value of each of `kinds` (int, str, datetime, UUID).

    Raises Invalid naming `cursor` for whatever is none, also where only PostgreSQL would refuse it.
    """
    try:
        key = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not isinstance(key, list) or len(key) != len(kinds):
            raise ValueError(cursor)
        return tuple(_restore(kind, value) for kind, value in zip(kinds, key, strict=True))
    except (ValueError, OverflowError) as error:
        raise Invalid(
            "The cursor is not one of this list's.",
            errors=[{"loc": ["query", "cursor"], "msg": "not a cursor"}],
        ) from error


def _restore(kind: type, value: Any) -> Any:
    if kind is int:
        if type(value) is not int or abs(value) >= 2**31:
            raise ValueError(value)
        return value
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(value)
    if kind is datetime:
        at = datetime.fromisoformat(value)
        if at.tzinfo is None:
            raise ValueError(value)
        return at.astimezone(UTC)
    return kind(value)
