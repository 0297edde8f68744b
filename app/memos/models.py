"""The table of memos. A memo's row is also its batch. A batch is formed once, and its boundaries never move."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.layers.derived import MessageRangeColumns, RefusalsColumn

Time = TIMESTAMP(timezone=True)
Json = JSONB(none_as_null=True)

NAME = "memos"
"""The layer's name."""


class Memo(MessageRangeColumns, RefusalsColumn, Table):
    """A memo of the batch `first_seq…last_seq` (inclusive), or a memo that a person wrote, which covers no messages.

    `sort_key` orders the book. It is twice the first seq of the batch. For a memo that covers no messages, it is twice
    the seq that the memo follows, plus one.
    `source_hash` is the hash of the messages that the text was made from. `current_hash` is the hash of the batch's
    messages as they are now. The memo is stale while the two hashes differ.
    `size` and `filters` are the settings by which the batch was filled. If the end of the chat is cut off inside the
    batch, the row is deleted, and a batch with the same beginning, `size` and `filters` fills again. The row of a memo
    that a person edited is not deleted, but covers no messages afterwards.
    Whether a pending memo has failed is recorded only on its work item, so that memo and item cannot contradict each
    other.
    """

    __tablename__ = "memos"
    __table_args__ = (
        CheckConstraint("status IN ('pending', 'ready', 'empty')", name="status"),
        CheckConstraint("origin IN ('model', 'extractive', 'person')", name="origin"),
        CheckConstraint("(first_seq IS NULL) = (last_seq IS NULL) AND first_seq <= last_seq", name="range"),
        CheckConstraint("first_seq IS NOT NULL OR origin = 'person'", name="person"),
        Index("ix_memos_sort_key", "chat_key", "line_id", "sort_key", "number"),
        Index("ix_memos_pinned", "chat_key", "line_id", "sort_key", postgresql_where=text("pinned")),
        Index(
            "uq_memos_batch",
            "chat_key",
            "line_id",
            "first_seq",
            unique=True,
            postgresql_where=text("first_seq IS NOT NULL"),
        ),
        Index(
            "ix_memos_stale",
            "chat_key",
            "line_id",
            "first_seq",
            postgresql_where=text("source_hash IS DISTINCT FROM current_hash AND deleted_at IS NULL"),
        ),
        {"info": {"begins": "sort_key / 2"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    memo_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int]
    sort_key: Mapped[int]
    first_message_id: Mapped[str | None]
    status: Mapped[str] = mapped_column(server_default="pending")
    highlights: Mapped[list[dict[str, Any]]] = mapped_column(Json, server_default="[]")
    text: Mapped[str] = mapped_column(Text, server_default="")
    tokens: Mapped[int] = mapped_column(server_default="0")
    size: Mapped[int | None]
    attempts: Mapped[int] = mapped_column(server_default="0")
    pinned: Mapped[bool] = mapped_column(server_default="false")
    edited: Mapped[bool] = mapped_column(server_default="false")
    created_at: Mapped[datetime] = mapped_column(Time)
    generated_at: Mapped[datetime | None] = mapped_column(Time)
    deleted_at: Mapped[datetime | None] = mapped_column(Time)
