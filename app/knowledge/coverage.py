"""What was learnt from messages, for the inclusion report."""

from collections.abc import Sequence
from uuid import UUID

from app.chats.coverage import Coverage
from app.kit.db import DbSession
from app.knowledge import queries


async def list_facts_learnt(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> Sequence[Coverage]:
    """Return a fact for each message of a range that taught a fact which holds.

    A message teaches a fact by its text, or by a tool call that is bound to it.
    """
    found = await queries.list_learnt(db_session, (chat_key, line_id), "fact", first_seq, last_seq)
    return [Coverage(seq, seq, "fact", str(statement_id), "learnt") for seq, _, statement_id in found]


async def list_memories_learnt(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> Sequence[Coverage]:
    """Return the most important live memory that each message of a range taught; forgotten memories do not count."""
    found = await queries.list_learnt(db_session, (chat_key, line_id), "memory", first_seq, last_seq)
    return [Coverage(seq, seq, "memory", memory_id, "learnt") for seq, memory_id, _ in found]
