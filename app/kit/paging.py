"""Keyset pagination: a cursor is the sort key of the last row, so every page costs the same at any depth."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Annotated, Any, Generic, TypeVar

import orjson
from fastapi import Query
from pydantic import BaseModel, Field

from app.kit.errors import Invalid

Item = TypeVar("Item")

DEFAULT_LIMIT = 50
MAX_LIMIT = 500

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""A page ends before the item with which it would exceed this many bytes, but has at least one item."""

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="The maximum number of items per page.")]
Cursor = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the previous page.")]


class Page(BaseModel, Generic[Item]):
    """One page of a list."""

    items: list[Item] = Field(description="The items.")
    next_cursor: str | None = Field(description="The next page's `cursor`, or null.")


def count_fitting(sizes: Iterable[int], budget_bytes: int, *, least: int = 1) -> int:
    """Return how many of the first items, given their sizes, fit into `budget_bytes`; at least `least` of them."""
    ends = list(accumulate(sizes))
    return max(sum(end <= budget_bytes for end in ends), min(len(ends), least))


def make_page(items: Sequence[Mapping[str, Any]], keys: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return a page of a list: as many of the first items as fit, and the cursor of the next page.

    Args:
        items: The items as JSON values, at most as many as the caller asked for. If all of them exceed MAX_PAGE_BYTES,
            the last ones are left out.
        keys: The sort keys of the rows that were found: those of `items`, and of a further row if there is one.

    """
    fitting = count_fitting((len(orjson.dumps(item, default=str)) for item in items), MAX_PAGE_BYTES)
    more = len(keys) > fitting
    return {"items": items[:fitting], "next_cursor": encode_cursor(*keys[fitting - 1]) if more else None}


def encode_cursor(*key: Any) -> str:
    """Return an opaque cursor for a sort key (numbers, strings, times, UUIDs)."""
    # asyncpg's UUIDs are a subclass, which orjson passes to `default`.
    return urlsafe_b64encode(orjson.dumps(key, default=str)).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """Return the sort key of a cursor: one value for each of `kinds` (int, str, datetime, UUID).

    Raises Invalid if the cursor is malformed or holds a value that PostgreSQL would reject.
    """
    try:
        key = orjson.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not isinstance(key, list) or len(key) != len(kinds):
            raise ValueError(cursor)
        return tuple(_restore(kind, value) for kind, value in zip(kinds, key, strict=True))
    except (ValueError, OverflowError) as error:
        raise Invalid(
            "The cursor is not valid for this list; use `next_cursor` of the previous page.",
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
