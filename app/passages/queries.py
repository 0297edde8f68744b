"""SQL of the index of words, except for its lookup (`lookup.py`)."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from app.kit.db import Connection
from app.kit.owners import CHAT_WIDE
from app.kit.planner import ONE_LOOKUP_EACH
from app.passages.models import IS_ON_A_LINE

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

MAX_MESSAGES = 250
MAX_BYTES = 4_000_000
"""At most so many messages, and bytes of their texts, are put into the index at once: the line is locked meanwhile."""

# Deleted messages are in the index, too, because they can return, and roles that no search finds have no keys.
_NEXT = f"""
    SELECT seq, message_id, digest,
        CASE WHEN role IN ('user', 'assistant', 'narrator') THEN content ELSE '' END AS text
    FROM (
        SELECT *, sum(octet_length(content)) OVER (ORDER BY seq) - octet_length(content) AS before_bytes FROM (
            SELECT * FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq > $3 ORDER BY seq LIMIT {MAX_MESSAGES}
        ) AS following
        UNION ALL
        SELECT m.*, 0 FROM unnest($4::int[]) AS changed (seq) CROSS JOIN LATERAL (
            SELECT * FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = changed.seq {ONE_LOOKUP_EACH}) AS m
    ) AS found
    WHERE before_bytes < {MAX_BYTES} ORDER BY seq"""  # noqa: S608 - of constants

_DIGESTS = f"""
    SELECT m.seq, m.digest FROM unnest($3::int[]) AS wanted (seq) CROSS JOIN LATERAL (
        SELECT seq, digest FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = wanted.seq {ONE_LOOKUP_EACH}
    ) AS m"""  # noqa: S608

_ADD = f"""
    INSERT INTO passages (chat_key, line_id, message_id, digest, keys)
    SELECT $1, '{CHAT_WIDE}', new.message_id, new.digest, new.keys::int[]
    FROM unnest($2::text[], $3::bytea[], $4::text[]) AS new (message_id, digest, keys) ORDER BY 3, 4
    ON CONFLICT (chat_key, line_id, message_id, digest) DO NOTHING"""  # noqa: S608

_DELETE_LEFTOVERS = f"""
    DELETE FROM passages WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}'
        AND ($2::text[] IS NULL OR message_id = ANY ($2)) AND NOT {IS_ON_A_LINE}"""  # noqa: S608


class Text(NamedTuple):
    """A message to be put into the index; `text` is empty if no search finds it."""

    seq: int
    message_id: str
    digest: bytes
    text: str


async def list_next(connection: Connection, line: Line, after_seq: int, changed: Sequence[int]) -> list[Text]:
    """Return the messages at the seqs of `changed` and the next ones after a seq, deleted ones included, in order."""
    return [Text(*row) for row in await connection.fetch(_NEXT, *line, after_seq, changed)]


async def list_digests(connection: Connection, line: Line, seqs: Sequence[int]) -> dict[int, bytes]:
    """Return the digests of the messages at these seqs."""
    return {row["seq"]: row["digest"] for row in await connection.fetch(_DIGESTS, *line, seqs)}


async def add(connection: Connection, chat_key: UUID, rows: Sequence[tuple[str, bytes, Sequence[int]]]) -> None:
    """Add (message id, digest, keys as numbers) of texts that may be in the index already."""
    ids, digests, keys = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    await connection.execute(_ADD, chat_key, ids, digests, ["{" + ",".join(map(str, one)) + "}" for one in keys])


async def delete_leftovers(connection: Connection, chat_key: UUID, message_ids: Sequence[str] | None = None) -> None:
    """Delete the rows of texts that no line of the chat has; with `message_ids` only rows of these messages."""
    await connection.execute(_DELETE_LEFTOVERS, chat_key, message_ids)
