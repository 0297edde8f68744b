"""The table of diary entries, and the index of the chats that share their diaries."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, LargeBinary, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.chats.models import ChatLine
from app.kit.db import Table
from app.layers.derived import MessageRangeColumns

Time = TIMESTAMP(timezone=True)
Json = JSONB(none_as_null=True)


Index(
    "ix_chats_diaries",
    ChatLine.user_key,
    postgresql_where=text("line_status = 'current' AND settings #>> '{diary,scope}' = 'character'"),
)


class DiaryEntry(MessageRangeColumns, Table):
    """An entry in the diary of a character.

    `number` orders the entries of a character, from 1; no number is used twice on a line. An entry of the service gets
    its number when it is scheduled. `at_seq` is the seq of a message: for an entry of a person, the message that was
    the newest when the person wrote it; for an entry of the service, the last message that the entry is about. `origin`
    is who wrote the current text: the character with its `tool`, a `person`, or the service with a `model` in the
    character's voice. `edited` is whether a person replaced the text of a tool or a model.

    An entry that a tool wrote is `hidden` while the reply that it is bound to has another text, is deleted or hidden by
    a person, or is still to come (`app/bindings`). It has the id of its binding, and once the reply is appended,
    `at_seq` is the seq of the reply. With `kept` a person has ended this dependence.

    An entry of the service has the range of messages that it was made from (both ends inclusive). It also has a hash of
    the messages that were read and one of the present messages, and is stale while the two differ. Its `content` is
    empty if nothing in the range matters any more; the row is kept because the messages can change again. An entry that
    a tool wrote has the `identity` (hash) of its first text, even after an edit; in other entries it is null.
    `dated_at` is the time in the story that the entry's date shows; `created_at` is when the row was inserted.
    """

    __tablename__ = "diary_entries"
    __table_args__ = (
        CheckConstraint("origin IN ('model', 'tool', 'person')", name="origin"),
        CheckConstraint(
            "CASE origin WHEN 'model' THEN first_seq IS NOT NULL WHEN 'tool' THEN first_seq IS NULL ELSE true END",
            name="source",
        ),
        CheckConstraint("NOT hidden OR (origin = 'tool' AND NOT kept)", name="hidden"),
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
        {"info": {"begins": "coalesce(first_seq, at_seq)", "exported": "NOT hidden"}},
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
    kept: Mapped[bool] = mapped_column(server_default="false")
    hidden: Mapped[bool] = mapped_column(server_default="false")
    dated_at: Mapped[datetime] = mapped_column(Time)
    created_at: Mapped[datetime] = mapped_column(Time)
    deleted_at: Mapped[datetime | None] = mapped_column(Time)
