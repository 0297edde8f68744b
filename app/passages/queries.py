"""SQL of the index of words and of vectors, except for their lookup (`lookup.py`)."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import orjson

from app.chats.characters import name_speakers
from app.kit.db import Connection
from app.kit.owners import CHAT_WIDE
from app.kit.planner import ONE_LOOKUP_EACH
from app.messages.rules import IS_OF_STORY
from app.passages.models import write_is_on_a_line
from app.passages.progress import NAME

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

MAX_MESSAGES = 250
MAX_BYTES = 4_000_000
"""The limits of one run, which locks the line while it saves its rows.

A run takes at most MAX_MESSAGES messages after those in the index, and no further message once their texts have
MAX_BYTES bytes. Changed messages are not limited.
"""

# Deleted messages are included, because they can return. Messages of roles that no search finds get an empty text: they
# get no row, but count as indexed.
_NEXT = f"""
    SELECT seq, message_id, digest, role, name,
        CASE WHEN {IS_OF_STORY} THEN content ELSE '' END AS text
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
    ON CONFLICT (chat_key, line_id, message_id, digest) DO UPDATE SET keys = excluded.keys
    WHERE passages.keys <> excluded.keys"""  # noqa: S608

_FORGET_OTHER_ANALYSES = f"""
    UPDATE chats SET cursors = cursors #- '{{{NAME},analysis}}' #- '{{{NAME},remade}}'
    WHERE chat_key = $1 AND line_id <> $2 AND cursors -> '{NAME}' ->> 'analysis' <> $3"""  # noqa: S608

_DELETE_LEFTOVERS = f"""
    DELETE FROM passages WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}'
        AND ($2::text[] IS NULL OR message_id = ANY ($2)) AND NOT {write_is_on_a_line("passages")}"""  # noqa: S608

_ADD_VECTORS = f"""
    INSERT INTO vectors (chat_key, line_id, model_id, message_id, digest, part, vector)
    SELECT $1, '{CHAT_WIDE}', $2, new.message_id, new.digest, new.part, new.vector::halfvec
    FROM unnest($3::text[], $4::bytea[], $5::int[], $6::text[]) AS new (message_id, digest, part, vector)
    ORDER BY 4, 5, 6
    ON CONFLICT (chat_key, line_id, model_id, message_id, digest, part) DO NOTHING"""  # noqa: S608

_WITH_VECTORS = f"""
    SELECT v.message_id, v.digest FROM unnest($3::text[], $4::bytea[]) AS text (message_id, digest)
    CROSS JOIN LATERAL (
        SELECT message_id, digest FROM vectors
        WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}' AND model_id = $2 AND message_id = text.message_id
            AND digest = text.digest AND part = 0 {ONE_LOOKUP_EACH}) AS v"""  # noqa: S608

_COPY_VECTORS = f"""
    INSERT INTO vectors (chat_key, line_id, model_id, message_id, digest, part, vector)
    SELECT $2, line_id, model_id, message_id, digest, part, vector FROM vectors v
    WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}' AND EXISTS (
        SELECT FROM messages m
        WHERE m.chat_key = $2 AND m.line_id = $3 AND m.message_id = v.message_id AND m.digest = v.digest)"""  # noqa: S608

_DELETE_LEFTOVER_VECTORS = f"""
    DELETE FROM vectors WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}'
        AND ($2::text[] IS NULL OR message_id = ANY ($2)) AND NOT {write_is_on_a_line("vectors")}"""  # noqa: S608

_WITHOUT_VECTORS = f"""
    SELECT seq, message_id, digest, role, name, content AS text FROM messages m
    WHERE chat_key = $1 AND line_id = $2 AND seq > $3 AND {IS_OF_STORY} AND NOT EXISTS (
        SELECT FROM vectors v
        WHERE v.chat_key = m.chat_key AND v.line_id = '{CHAT_WIDE}' AND v.model_id = $4
            AND v.message_id = m.message_id AND v.digest = m.digest AND v.part = 0 {ONE_LOOKUP_EACH})
    ORDER BY seq LIMIT $5"""  # noqa: S608


class Text(NamedTuple):
    """A message to be put into the index; `text` is empty if no search finds it."""

    seq: int
    message_id: str
    digest: bytes
    role: str
    name: str | None
    text: str


async def list_next(connection: Connection, line: Line, after_seq: int, changed: Sequence[int]) -> list[Text]:
    """Return the messages at the seqs of `changed` and the next ones after a seq, deleted ones included, in order."""
    return [Text(*row) for row in await connection.fetch(_NEXT, *line, after_seq, changed)]


async def list_digests(connection: Connection, line: Line, seqs: Sequence[int]) -> dict[int, bytes]:
    """Return the digests of the messages at these seqs."""
    return {row["seq"]: row["digest"] for row in await connection.fetch(_DIGESTS, *line, seqs)}


async def add(connection: Connection, chat_key: UUID, rows: Sequence[tuple[str, bytes, Sequence[int]]]) -> None:
    """Add (message id, digest, keys as numbers) of texts; those that are in the index already get these keys."""
    ids, digests, keys = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    await connection.execute(_ADD, chat_key, ids, digests, ["{" + ",".join(map(str, one)) + "}" for one in keys])


async def forget_other_analyses(connection: Connection, line: Line, analysis: str) -> None:
    """Remove other analyses than this one (`keys.name_analysis`) from the cursors of the chat's other lines.

    The rows belong to the chat, and its lines share them. When one line makes new keys by the given analysis, the
    cursor of another line can record an analysis that its rows no longer have.
    """
    await connection.execute(_FORGET_OTHER_ANALYSES, *line, analysis)


async def delete_leftovers(connection: Connection, chat_key: UUID, message_ids: Sequence[str] | None = None) -> None:
    """Delete the rows of texts that no line of the chat has; with `message_ids` only rows of these messages."""
    await connection.execute(_DELETE_LEFTOVERS, chat_key, message_ids)


async def list_current_lines(connection: Connection, after: UUID, limit: int) -> list[tuple[Line, str]]:
    """Return up to `limit` current lines, those with the lowest chat keys above `after`, and their tenants."""
    rows = await connection.fetch(
        """
        SELECT chat_key, line_id, tenant FROM chats
        WHERE line_status = 'current' AND chat_key > $1 ORDER BY chat_key LIMIT $2""",
        after,
        limit,
    )
    return [((row["chat_key"], row["line_id"]), row["tenant"]) for row in rows]


async def list_without_vectors(
    connection: Connection, line: Line, model_id: int, after_seq: int, limit: int
) -> list[Text]:
    """Return the next messages after a seq whose texts have no vector of a model, deleted ones included, in order.

    Messages of roles that no search finds are left out.
    """
    rows = await connection.fetch(_WITHOUT_VECTORS, *line, after_seq, model_id, limit)
    return [Text(*row) for row in rows]


async def has_index(connection: Connection, chat_key: UUID) -> bool:
    """Return whether the current line of a chat has a cursor of the index of words; a fork can have a copied one."""
    query = f"SELECT cursors ? '{NAME}' FROM chats WHERE chat_key = $1 AND line_status = 'current'"  # noqa: S608
    return bool(await connection.fetchval(query, chat_key))


async def read_language(connection: Connection, line: Line) -> str | None:
    """Return the language of a line (BCP 47); None if it is unknown."""
    query = "SELECT language FROM chats WHERE chat_key = $1 AND line_id = $2"
    language: str | None = await connection.fetchval(query, *line)
    return language


async def read_speakers(connection: Connection, line: Line) -> dict[str, str]:
    """Return, by role, the name that a message of the line gets if it has none of its own."""
    row = await connection.fetchrow(
        "SELECT characters::text AS characters, user_name FROM chats WHERE chat_key = $1 AND line_id = $2", *line
    )
    return name_speakers(orjson.loads(row["characters"]), row["user_name"]) if row else {}


async def list_with_vectors(
    connection: Connection, chat_key: UUID, model_id: int, texts: Sequence[Text]
) -> set[tuple[str, bytes]]:
    """Return (message id, digest) of those texts that have a vector of the model."""
    ids, digests = [text.message_id for text in texts], [text.digest for text in texts]
    return {(row[0], row[1]) for row in await connection.fetch(_WITH_VECTORS, chat_key, model_id, ids, digests)}


async def add_vectors(
    connection: Connection, chat_key: UUID, model_id: int, rows: Sequence[tuple[str, bytes, int, str]]
) -> None:
    """Add (message id, digest, part, vector as text) of texts that may have vectors already."""
    await connection.execute(_ADD_VECTORS, chat_key, model_id, *map(list, zip(*rows, strict=True)))


async def copy_vectors(connection: Connection, source: UUID, line: Line) -> None:
    """Copy the vectors of the chat `source` to the chat of a new line: those of the texts that this line has."""
    await connection.execute(_COPY_VECTORS, source, *line)


async def delete_leftover_vectors(
    connection: Connection, chat_key: UUID, message_ids: Sequence[str] | None = None
) -> None:
    """Delete the vectors of texts that no line of the chat has; with `message_ids` only those of these messages."""
    await connection.execute(_DELETE_LEFTOVER_VECTORS, chat_key, message_ids)


async def delete_vectors_of_others(connection: Connection, chat_key: UUID, model_id: int) -> int:
    """Delete a chat's vectors of all models but one, and return their number."""
    status = await connection.execute(
        f"DELETE FROM vectors WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}' AND model_id <> $2",  # noqa: S608
        chat_key,
        model_id,
    )
    return int(status.removeprefix("DELETE "))
