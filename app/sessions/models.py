"""The table of sessions: stretches of a chat between two breaks."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Table


class ChatSession(Table):
    """One session, which begins at `first_seq` and ends where the next one begins; the last one is open.

    Sessions are numbered from 1, and the first one begins at seq 1. A line without a break has no rows: its only
    session is computed from the chat (`open_session.py`). The first break inserts the rows of both sessions, so a line
    has either no rows or one for each session. The end of a session is not stored, so when a line is truncated, no row
    has to change: rows are only deleted.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        CheckConstraint("reason IN ('first', 'idle', 'daily', 'turns', 'manual')", name="reason"),
        CheckConstraint("number >= 1 AND first_seq >= number", name="number"),
        CheckConstraint("(number = 1) = (reason = 'first')", name="first"),
        # A copy up to a seq has the rows up to that seq. Session 1 counts as beginning at 0, so an empty copy has it.
        {"info": {"begins": "CASE WHEN number = 1 THEN 0 ELSE first_seq END"}},
    )

    chat_key: Mapped[UUID] = mapped_column(primary_key=True)
    line_id: Mapped[UUID] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    session_id: Mapped[UUID]
    first_seq: Mapped[int]
    reason: Mapped[str]
    began_at: Mapped[datetime] = mapped_column(TIMESTAMP(timezone=True))
