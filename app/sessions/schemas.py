"""Response bodies of sessions."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from app.chats.events import SessionReason
from app.sessions.book import Listed


class SessionOut(BaseModel):
    """A session. The last one is open."""

    id: UUID = Field(description="Its id; copies of the line have the same one.")
    number: int = Field(description="Its number on the line, from 1.")
    first_seq: int = Field(description="The seq at which it begins; an open session may be empty.")
    last_seq: int | None = Field(description="The seq at which it ended, inclusive; null while it is open.")
    reason: SessionReason = Field(
        description="Why it began: as the first one (`first`), after a pause (`idle`), at the reset hour (`daily`), "
        "after the maximum of turns (`turns`), or by hand (`manual`)."
    )
    messages: int | None = Field(description="How many messages it has, without deleted ones; null if more than 1,000.")
    began_at: datetime = Field(
        description="When its first message was appended, or it was begun by hand. For the first session: when the "
        "chat was created."
    )
    ended_at: datetime | None = Field(description="When the next session began; null while it is open.")


def session_out(listed: Listed) -> dict[str, Any]:
    """Return a session as JSON."""
    return {
        "id": listed.session_id,
        "number": listed.number,
        "first_seq": listed.first_seq,
        "last_seq": listed.last_seq,
        "reason": listed.reason,
        "messages": listed.messages,
        "began_at": listed.began_at,
        "ended_at": listed.ended_at,
    }
