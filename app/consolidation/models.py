"""The table of consolidated ranges."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table
from app.layers.derived import MessageRangeColumns, RefusalsColumn

Time = TIMESTAMP(timezone=True)


class Consolidation(MessageRangeColumns, RefusalsColumn, Table):
    """A range of messages that facts and memories were learnt from; both ends are inclusive.

    The facts and memories themselves are in `statements` and `teachings`. This row has a hash of the messages that were
    read, and one of the present messages: while the hashes differ, the range has to be read again. The row is inserted
    when the range has been read for the first time; until then, only the payload of the work item contains the range.
    `learnt_at` is when the range became due, but always later than the `learnt_at` of the range before it. Statements
    that are learnt from the range get this time as their `learnt_at`, even if they are learnt later. So a value from an
    old message does not replace a newer one. A fraction of a second is added for the order of the statements.
    """

    __tablename__ = "consolidations"
    __table_args__ = (
        CheckConstraint("first_seq <= last_seq", name="range"),
        CheckConstraint("origin IN ('model', 'extractive')", name="origin"),
        Index(
            "ix_consolidations_stale",
            "chat_key",
            "line_id",
            "first_seq",
            postgresql_where=text("source_hash IS DISTINCT FROM current_hash"),
        ),
        {"info": {"begins": "first_seq"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    first_seq: Mapped[int] = mapped_column(primary_key=True)
    last_seq: Mapped[int] = mapped_column()
    learnt_at: Mapped[datetime] = mapped_column(Time)
    generated_at: Mapped[datetime] = mapped_column(Time)
