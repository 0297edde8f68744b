"""Rows derived from messages: their columns, and how they become stale or valid again when messages change.

A row stores two hashes: of the messages it was made from, and of the current messages of its range. A transaction that
changes messages updates the second hash. The row is stale while the two differ.

Only eligible messages count: those from which memories may be made. A row keeps the filters that decide this.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field
from sqlalchemy import ColumnElement, LargeBinary, Select, String, cast, exists, literal, select, true
from sqlalchemy import Table as CoreTable
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import InstrumentedAttribute, Mapped, mapped_column

from app.chats.eligibility import Filters, hash_eligible
from app.chats.head import Head, RangeMessage
from app.chats.ranges import inside_of, join_ranges
from app.chats.scheduling import cancel_automatic, schedule
from app.kit.db import DbSession
from app.kit.refusals import REFUSAL_KINDS, Refusal, RefusalKind
from app.kit.work_queue import NewWork, WorkItem
from app.messages.reads import list_not_deleted

Json = JSONB(none_as_null=True)
Of = TypeVar("Of")

Origin = Literal["model", "extractive", "tool", "person"]
ORIGIN = (
    "The author: the service (`model`, or `extractive` without a model), a character (`tool`), or a person (`person`)."
)
IN_PROMPT = "Whether contexts contain it, unless a small `max_tokens` trims it."
REFUSALS = "The model's refused answers, if the text was made without the model because of them; else empty."
EDITED = "Whether a person changed a text of the service or of a tool."


class RefusalOut(BaseModel):
    """An answer of the model that was refused."""

    kind: RefusalKind = Field(description=f"What is wrong with the answer. {REFUSAL_KINDS}")
    reason: str = Field(description="The fault in words. The service asks the model again with these words.")


_RENAME_IN_FILTERS = """
    UPDATE {table} SET filters = jsonb_set(filters, '{{disabled}}', (
        SELECT jsonb_agg(CASE one WHEN $3 THEN $4 ELSE one END ORDER BY nth)
        FROM jsonb_array_elements_text(filters -> 'disabled') WITH ORDINALITY AS d (one, nth)))
    WHERE chat_key = $1 AND line_id = $2 AND filters -> 'disabled' ? $3"""


class DerivedColumns:
    """The columns of a row that the service derived from other rows.

    `origin` is the author of the current text (`Origin`). `filters` are the eligibility filters with which the range
    was first read; later changes of the settings do not change them. `source_hash` is the hash of what the text was
    made from, `current_hash` the hash of the current content of the same range; the row is stale if they differ.
    """

    origin: Mapped[str]
    filters: Mapped[dict[str, Any] | None] = mapped_column(Json)
    source_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    current_hash: Mapped[bytes | None] = mapped_column(LargeBinary)
    model: Mapped[str | None]
    prompt_version: Mapped[str | None]


class RefusalsColumn:
    """The column of a row whose text is made without the model if the model gives no usable answer.

    `refusals` contains the answers of the model that were refused before the text was made without it. It is null if
    no answer was refused, for example because no model was asked. It is also null if the text was not made in this way.
    """

    refusals: Mapped[list[dict[str, str]] | None] = mapped_column(Json)


class MessageRangeColumns(DerivedColumns):
    """The columns of a row that was derived from the messages `first_seq…last_seq`, both inclusive."""

    first_seq: Mapped[int | None]
    last_seq: Mapped[int | None]


def keep_refusals(refusals: Sequence[Refusal]) -> list[dict[str, str]] | None:
    """Return the value of the column `refusals`: null if no answer was refused."""
    return [{"kind": one.kind, "reason": one.reason} for one in refusals] or None


def list_refusals(origin: str, refusals: list[dict[str, str]] | None) -> list[dict[str, str]]:
    """Return the column `refusals` as the API has it (`RefusalOut`); empty unless the origin is `extractive`.

    With another origin, the column can still contain the refusals of a former text: an older release that makes a text
    with the model does not clear it.
    """
    return (refusals or []) if origin == "extractive" else []


@dataclass(frozen=True, slots=True)
class DerivedRow(Generic[Of]):
    """The fields of a row that determine whether it is stale.

    Attributes:
        of: The row as its layer reads it.
        key: The key of the work item that makes it again; "" if its layer does not schedule it with `reschedule`.
        first_seq: The first message of its range.
        last_seq: The last message of its range, inclusive.
        filters: The eligibility filters of the range.
        source_hash: The hash of what it was made from; None if it is not made yet.
        current_hash: The stored hash of its range.
        keeps_text: Whether it is never made again automatically, because a person wrote or deleted it.

    """

    of: Of
    key: str
    first_seq: int
    last_seq: int
    filters: Filters
    source_hash: bytes | None
    current_hash: bytes | None
    keeps_text: bool = False


@dataclass(frozen=True, slots=True)
class Rehashed(Generic[Of]):
    """A row with the current content of its range.

    Attributes:
        row: The row as stored.
        current_hash: The hash of the current content of its range.
        messages: The messages of its range that are not deleted, in seq order.

    """

    row: DerivedRow[Of]
    current_hash: bytes
    messages: Sequence[RangeMessage]

    @property
    def has_changed(self) -> bool:
        """Whether the content of the range differs from the stored hash."""
        return self.current_hash != self.row.current_hash

    @property
    def is_valid(self) -> bool:
        """Whether the row was made from the current content of the range."""
        return self.current_hash == self.row.source_hash


async def rehash(db_session: DbSession, head: Head, rows: Sequence[DerivedRow[Of]]) -> list[Rehashed[Of]]:
    """Return `rows` with the current hashes of their ranges; nothing is written."""
    if not rows:
        return []
    ranges = join_ranges(sorted((row.first_seq, row.last_seq) for row in rows))
    messages = await list_not_deleted(db_session, *head.line, ranges)
    found = []
    for row in rows:
        inside = inside_of(messages, row.first_seq, row.last_seq)
        found.append(Rehashed(row, hash_eligible(inside, row.filters), inside))
    return found


async def reschedule(
    db_session: DbSession,
    head: Head,
    layer: str,
    rehashed: Sequence[Rehashed[Any]],
    *,
    enabled: bool,
    now: datetime,
    settle_s: float,
) -> bool:
    """Schedule stale rows if the layer is enabled, and cancel the work of valid ones; return whether any is scheduled.

    Rows that a person wrote or deleted are not touched. Work that a person requested is never cancelled. If its row
    is stale, it is rescheduled with the same payload, or without one if it had failed for good.
    """
    own = [one for one in rehashed if not one.row.keeps_text]
    valid = [one.row.key for one in own if one.is_valid]
    if valid:
        await cancel_automatic(db_session, head, layer, valid)
    stale = [NewWork(one.row.key, one.row.first_seq) for one in own if not one.is_valid]
    if not stale or not enabled:
        return False
    await schedule(db_session, head, layer, stale, now=now, settle_s=settle_s)
    return True


async def rename_in_filters(
    db_session: DbSession, line: tuple[UUID, UUID], tables: Iterable[CoreTable], former: str, name: str
) -> None:
    """Rename a disabled character in the filters of rows, so that they leave out the same messages as before."""
    for table in tables:
        if "filters" in table.c:
            await db_session.raw.execute(_RENAME_IN_FILTERS.format(table=table.name), *line, former, name)


async def schedule_unscheduled(
    db_session: DbSession,
    head: Head,
    layer: str,
    key_column: InstrumentedAttribute[Any],
    *,
    prefix: str = "",
    condition: ColumnElement[bool] | None = None,
    now: datetime,
    settle_s: float,
) -> bool:
    """Schedule the work that `list_unscheduled` returns, for example after the layer was enabled.

    Returns whether any work was scheduled.
    """
    items = await list_unscheduled(db_session, head, layer, key_column, prefix=prefix, condition=condition)
    if items:
        await schedule(db_session, head, layer, items, now=now, settle_s=settle_s)
    return bool(items)


async def list_unscheduled(
    db_session: DbSession,
    head: Head,
    layer: str,
    key_column: InstrumentedAttribute[Any],
    *,
    prefix: str = "",
    condition: ColumnElement[bool] | None = None,
) -> list[NewWork]:
    """Return work items for the stale rows that have none, because their messages changed while the layer was disabled.

    Rows with a person's text are left out. So are rows whose work item has failed for good.

    Args:
        db_session: Open unit of work.
        head: The line's head.
        layer: The layer's name.
        key_column: The column that forms the key of a row's work item, after `prefix`. Its model has
            MessageRangeColumns.
        prefix: The prefix of the keys.
        condition: Selects the rows, for example those that are not deleted. If it is the condition of a partial index
            of stale rows, that index is used.

    """
    rows = await db_session.execute(select_unscheduled(head, layer, key_column, prefix=prefix, condition=condition))
    return [NewWork(f"{prefix}{key}", first_seq) for key, first_seq in rows]


def select_unscheduled(
    head: Head,
    layer: str,
    key_column: InstrumentedAttribute[Any],
    *,
    prefix: str,
    condition: ColumnElement[bool] | None,
) -> Select[Any, int]:
    """Return the query of `list_unscheduled`: the value of the key column and the first seq of each row."""
    row = key_column.class_.__table__.c
    work_exists = exists().where(
        WorkItem.owner_key == head.chat_key,
        WorkItem.line_id == head.line_id,
        WorkItem.layer == layer,
        WorkItem.key == literal(prefix) + cast(key_column, String),
    )
    return select(key_column, row.first_seq).where(
        row.chat_key == head.chat_key,
        row.line_id == head.line_id,
        row.source_hash.is_distinct_from(row.current_hash),
        row.first_seq.is_not(None),
        row.origin != "person",
        true() if condition is None else condition,
        ~work_exists,
    )
