"""How a re-import reads the messages of each batch and of each diary period."""

import asyncpg
import pytest

from app.diary.queries import SPEAKERS
from app.messages.reads import NOT_DELETED
from tests.revision_watch import unwatch_revisions

FILL = """
    INSERT INTO messages (chat_key, line_id, seq, message_id, role, content, tokens, sent_at, identity, digest)
    SELECT md5('{chat}')::uuid, md5('{chat}')::uuid, seq, 'm' || seq, 'user', 'Hello.', 2, now(), 'i', 'd'
    FROM generate_series(1, {messages}) AS seq"""
"""A chat with so many messages."""

SHRINK = "DELETE FROM messages WHERE seq > 1000"

FIRSTS = list(range(1, 1_000, 10))
LASTS = [first + 9 for first in FIRSTS]


@pytest.mark.parametrize("statement", [NOT_DELETED, SPEAKERS])
async def test_a_new_line_is_read_by_primary_key(fresh_database_url: str, statement: str) -> None:
    """A line that has no statistics yet.

    The primary key has a level more than the index of ids, so that PostgreSQL takes it to be more expensive.
    """
    await unwatch_revisions(fresh_database_url)
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""), timeout=60)
    try:
        for change in (
            FILL.format(chat="known", messages=40_000),
            SHRINK,
            "ANALYZE messages",
            FILL.format(chat="new", messages=1_000),
            "REINDEX INDEX uq_messages_id",
        ):
            await connection.execute(change, timeout=300)
        line = await connection.fetchrow("SELECT chat_key, line_id FROM messages WHERE chat_key = md5('new')::uuid")
        assert line is not None
        plan = await connection.fetch(f"EXPLAIN {statement}", *line, FIRSTS, LASTS)
    finally:
        await connection.close()
    lines = "\n".join(row[0] for row in plan)
    assert "pk_messages" in lines
    assert "uq_messages_id" not in lines
