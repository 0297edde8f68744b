"""What the characters wrote down, entry by entry."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.layers.derived import MessageRangeColumns

Time = TIMESTAMP(timezone=True)
Json = JSONB(none_as_null=True)


class DiaryEntry(MessageRangeColumns, Table):
    """One entry in the diary of a character.

    `number` orders the entries of one character, from 1, and is never given twice on a line; the service's has it from
    when it is due. `at_seq` is the newest message when it was written. `origin` says who wrote: the `character` with
    its tool, a `person`, or the `service` in the character's voice. Only the service's has a range of messages that it
    was made from (both inclusive), and hashes of it: unequal is stale; an empty one found nothing there that mattered,
    and is kept for when that changes. Only a character's has the `identity` of the words that it was first written in,
    by which a retry of the tool call is known whatever has become of them. `dated_at` is the moment of the story that
    its date tells, `created_at` that of the service.
    """

    __tablename__ = "diary_entries"
    __table_args__ = (
        CheckConstraint("origin IN ('character', 'person', 'service')", name="origin"),
        CheckConstraint("(origin = 'service') = (first_seq IS NOT NULL)", name="service"),
        CheckConstraint("(first_seq IS NULL) = (last_seq IS NULL) AND first_seq <= last_seq", name="range"),
        Index("uq_diary_entries_number", "chat_key", "line_id", "character", "number", unique=True),
        Index("ix_diary_entries_seq", "chat_key", "line_id", "at_seq"),
        Index(
            "ix_diary_entries_service",
            "chat_key",
            "line_id",
            "last_seq",
            postgresql_where=text("first_seq IS NOT NULL"),
        ),
        {"info": {"begins": "coalesce(first_seq, at_seq)"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    entry_id: Mapped[UUID] = mapped_column(primary_key=True)
    character: Mapped[str]
    number: Mapped[int]
    at_seq: Mapped[int]
    content: Mapped[str] = mapped_column(Text)
    identity: Mapped[bytes | None] = mapped_column(LargeBinary)
    edited: Mapped[bool] = mapped_column(server_default="false")
    dated_at: Mapped[datetime] = mapped_column(Time)
    created_at: Mapped[datetime] = mapped_column(Time)
    deleted_at: Mapped[datetime | None] = mapped_column(Time)
