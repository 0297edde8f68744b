"""Makes the vectors of all chats due, after another embedding model was chosen."""

from typing import Final
from uuid import UUID

from app.chats.heads import lock_line
from app.kit.clock import Clock
from app.kit.db import Database
from app.passages import queries
from app.passages.handlers import schedule_next
from app.passages.progress import VECTORS

_LINES: Final = 1_000
"""How many lines are read at once."""


async def embed_all(database: Database, clock: Clock) -> int:
    """Make the vectors of all chats due, and return the number of chats. Texts that have one keep it."""
    count, after = 0, UUID(int=0)
    while True:
        async with database.raw() as connection:
            lines = await queries.list_current_lines(connection, after, _LINES)
        for line in lines:
            async with database.unit_of_work() as db_session:
                if head := await lock_line(db_session, *line):
                    await schedule_next(db_session, head, VECTORS, now=clock())
        count += len(lines)
        if len(lines) < _LINES:
            return count
        after = lines[-1][0]
