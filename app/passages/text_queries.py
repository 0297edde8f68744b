"""SQL of the vectors of the layers' texts, except for their lookup (`lookup.py`)."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from app.kit.db import Connection
from app.kit.owners import CHAT_WIDE, Owner
from app.kit.planner import ONE_LOOKUP_EACH
from app.layers.documents import COLUMNS, write_documents
from app.layers.layer import Layer
from app.passages.lookup import write_text_digest

Line = tuple[UUID, UUID]
"""A chat's key, and the id of one of its lines."""

# A text is read once, although each of a chat's characters may know it. A faded memory keeps its vector, because a
# search by a person finds it.
_TEXTS = """
    WITH texts AS (
        SELECT DISTINCT ON (digest) {digest} AS digest, d.text
        FROM chats c
        CROSS JOIN LATERAL (
            SELECT p.value ->> 'name' AS character, p.value ->> 'name' AS named, $4::timestamptz AS now,
                NULL::int AS before_seq, 'ignored' AS fading
            FROM jsonb_array_elements(CASE WHEN c.characters = '[]' THEN '[{{}}]' ELSE c.characters END) AS p) AS q
        CROSS JOIN LATERAL ({documents}) AS d (place, {columns})
        WHERE c.chat_key = $1 AND c.line_id = $2 AND d.text ~ '\\S'
    )
    SELECT digest, CASE WHEN NOT EXISTS (
        SELECT FROM text_vectors v
        WHERE v.chat_key = $1 AND v.line_id = '{chat_wide}' AND v.model_id = $3 AND v.digest = texts.digest
            AND v.part = 0 {one_lookup_each}) THEN text END AS text
    FROM texts"""

_STORED = f"SELECT DISTINCT digest FROM text_vectors WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}'"  # noqa: S608

# Two statements and not one with an OR, so that the chats of a user are found by their index.
_LINES = """
    SELECT chat_key, line_id FROM chats c
    WHERE {of_owner} AND line_status = 'current' AND EXISTS (
        SELECT FROM text_vectors v WHERE v.chat_key = c.chat_key AND v.line_id = '{chat_wide}' {one_lookup_each})
    LIMIT $2"""
_LINES_OF_USER, _LINES_OF_TENANT = (
    _LINES.format(of_owner=of_owner, chat_wide=CHAT_WIDE, one_lookup_each=ONE_LOOKUP_EACH)
    for of_owner in ("user_key = $1", "tenant = $1")
)

_ADD = f"""
    INSERT INTO text_vectors (chat_key, line_id, model_id, digest, part, vector)
    SELECT $1, '{CHAT_WIDE}', $2, new.digest, new.part, new.vector::halfvec
    FROM unnest($3::bytea[], $4::int[], $5::text[]) AS new (digest, part, vector) ORDER BY 4, 5
    ON CONFLICT (chat_key, line_id, model_id, digest, part) DO NOTHING"""  # noqa: S608

_DELETE = f"DELETE FROM text_vectors WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}' AND digest = ANY ($2)"  # noqa: S608

_DELETE_OF_OTHERS = f"DELETE FROM text_vectors WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}' AND model_id <> $2"  # noqa: S608

_COPY = f"""
    INSERT INTO text_vectors (chat_key, line_id, model_id, digest, part, vector)
    SELECT $2, line_id, model_id, digest, part, vector FROM text_vectors
    WHERE chat_key = $1 AND line_id = '{CHAT_WIDE}'"""  # noqa: S608


def write_texts(layers: Sequence[Layer]) -> str:
    """Return the statement of `list_texts` for these layers, or "" if they have no texts."""
    documents = write_documents(layers)
    if not documents:
        return ""
    return _TEXTS.format(
        digest=write_text_digest("d.text"),
        documents=documents,
        columns=COLUMNS,
        chat_wide=CHAT_WIDE,
        one_lookup_each=ONE_LOOKUP_EACH,
    )


async def list_texts(
    connection: Connection, statement: str, line: Line, model_id: int, now: datetime
) -> dict[bytes, str | None]:
    """Return the layers' texts of a line by digest: None for a text that has a vector of the model."""
    return {row["digest"]: row["text"] for row in await connection.fetch(statement, *line, model_id, now)}


async def list_lines(connection: Connection, owner: Owner, *, limit: int | None = None) -> list[Line]:
    """Return the current lines of a user's or a tenant's chats whose texts have vectors, at most `limit`."""
    if owner.user_id is not None:
        rows = await connection.fetch(_LINES_OF_USER, owner.key, limit)
    else:
        rows = await connection.fetch(_LINES_OF_TENANT, owner.tenant, limit)
    return [(row["chat_key"], row["line_id"]) for row in rows]


async def list_stored(connection: Connection, chat_key: UUID) -> set[bytes]:
    """Return the digests of the texts of a chat that have vectors, of any model."""
    return {row["digest"] for row in await connection.fetch(_STORED, chat_key)}


async def add(connection: Connection, chat_key: UUID, model_id: int, rows: Sequence[tuple[bytes, int, str]]) -> None:
    """Add vectors of texts; each row is (digest of the text, part, vector). Those that exist already do no harm."""
    await connection.execute(_ADD, chat_key, model_id, *map(list, zip(*rows, strict=True)))


async def delete(connection: Connection, chat_key: UUID, digests: Collection[bytes]) -> None:
    """Delete the vectors of texts, of all models."""
    await connection.execute(_DELETE, chat_key, list(digests))


async def delete_of_others(connection: Connection, chat_key: UUID, model_id: int) -> int:
    """Delete a chat's vectors of all models but one, and return their number."""
    return int((await connection.execute(_DELETE_OF_OTHERS, chat_key, model_id)).removeprefix("DELETE "))


async def copy(connection: Connection, source: UUID, target: UUID) -> None:
    """Copy the vectors of a chat to a new chat, both given by their keys."""
    await connection.execute(_COPY, source, target)
