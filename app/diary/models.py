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
    when it is due. `at_seq` is the newest message when it was written. `origin` is who wrote the text as it is now: the
    character with its `tool`, a `person`, or the service with a `model` in the character's voice; `edited` that a
    person replaced the text of a tool or a model. An entry of the service has the range of messages that it was made
    from (both inclusive) and hashes of it: unequal is stale. An empty one found nothing that mattered in its range and
    is kept for when that changes. An entry that a tool wrote has the `identity` of its first text, by which a retry of
    the tool call is recognised after an edit, too. `dated_at` is the moment of the story that
    its date tells, `created_at` that of the service.
    """

    __tablename__ = "diary_entries"
    __table_args__ = (
        CheckConstraint("origin IN ('model', 'tool', 'person')", name="origin"),
        CheckConstraint(
            "CASE origin WHEN 'model' THEN first_seq IS NOT NULL WHEN 'tool' THEN first_seq IS NULL ELSE true END",
            name="source",
        ),
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
