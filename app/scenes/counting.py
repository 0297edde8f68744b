"""Counts the eligible messages of the open scene."""

from app.chats.service import Head, is_eligible, list_range
from app.kit.db import DbSession

_FIRST_LOOK_SEQS = 512


async def count_eligible(db_session: DbSession, head: Head, first_seq: int, last_seq: int, *, enough: int) -> int:
    """Count the eligible messages of a range (inclusive); stop early once there are at least `enough`."""
    count, width = 0, _FIRST_LOOK_SEQS
    while first_seq <= last_seq and count < enough:
        until_seq = min(first_seq + width - 1, last_seq)
        messages = await list_range(db_session, *head.line, first_seq, until_seq)
        count += sum(is_eligible(message, head.filters) for message in messages)
        first_seq, width = until_seq + 1, width * 4
    return count
