"""Pages of the present and former values of a key."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.kit.paging import decode_cursor, make_page
from app.knowledge.known import Known
from app.knowledge.reading import Value


def make_history_page(
    values: Sequence[Value], present: Callable[[Known], dict[str, Any]], limit: int, cursor: str | None
) -> dict[str, Any]:
    """Return a page of `values`, which are newest first; `present` returns the fields that a layer adds to a value.

    A cursor stays valid if values are added. Raises Invalid for a malformed cursor.
    """
    before = decode_cursor(cursor, datetime, UUID) if cursor else None
    found = [one for one in values if before is None or _sort_key(one.known) < before][: limit + 1]
    items = [_value_out(one) | present(one.known) for one in found[:limit]]
    return make_page(items, [_sort_key(one.known) for one in found])


def _sort_key(known: Known) -> tuple[datetime, UUID]:
    return known.learnt_at, known.statement_id


def _value_out(value: Value) -> dict[str, Any]:
    known = value.known
    return {
        "id": known.statement_id,
        "scope": known.scope,
        "character": known.character,
        "origin": known.origin,
        "edited": known.edited,
        "created_at": known.learnt_at,
        "held_until": value.held_until,
    }
