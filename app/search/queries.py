"""The one SQL statement of a search: the texts of the layers, and old messages, that may contain a word."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from app.kit.db import Connection
from app.layers.documents import COLUMNS, write_documents
from app.layers.layer import Layer

MAX_MESSAGES = 1_000
"""How many seqs before the history are searched, the newest ones. Without an index, each message there is read."""

MAX_MESSAGE_TOKENS = 2_000
"""Longer messages are not searched."""

MAX_CANDIDATES = 100
"""How many texts are ranked: those with the most and the rarest words of the query."""

# The range of seqs bounds what is read; with LIMIT alone, the planner reads and sorts the whole line once it has
# statistics. Messages that scenes hide are out of the history, too. What is excluded from summaries is not recalled
# either.
_MESSAGES = f"""
    SELECT 'message:' || m.message_id, m.content, m.seq AS first_seq, m.seq AS last_seq, NULL::text,
        m.importance::float8, m.role, m.name
    FROM messages m
    WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id
        AND m.seq BETWEEN c.anchor_seq - {MAX_MESSAGES} AND c.head_seq AND m.deleted_at IS NULL AND m.kind IS NULL
        AND NOT m.blank AND NOT m.excluded AND m.role IN ('user', 'assistant', 'narrator') AND m.tokens <= $9
        AND (m.hidden_by = 'scenes' OR (m.hidden_by IS NULL AND m.seq < c.anchor_seq))
        AND (q.before_seq IS NULL OR m.seq < q.before_seq)"""  # noqa: S608

_SEARCH = """
    WITH texts AS MATERIALIZED (
        SELECT d.*, lower(concat_ws(': ', d.name, d.text)) AS lowered
        FROM chats c CROSS JOIN (
            SELECT $3::text AS character, $4::timestamptz AS now, $5::int AS before_seq OFFSET 0) AS q
        CROSS JOIN LATERAL ({texts}) AS d ({columns}, role, name)
        WHERE c.chat_key = $1 AND c.line_id = $2 AND (q.before_seq IS NULL OR d.last_seq < q.before_seq)
            AND split_part(d.source, ':', 1) <> ALL ($6::text[]) AND d.source <> ALL ($7::text[])
    ), total AS (
        SELECT count(*) AS texts FROM texts
    ), matches AS (
        SELECT t.source, count(*) OVER (PARTITION BY p.pattern) AS found
        FROM texts t JOIN unnest($8::text[]) AS p (pattern) ON strpos(t.lowered, p.pattern) > 0
    ), likely AS (
        SELECT m.source, sum(ln(1 + total.texts::float8 / m.found)) AS likelihood
        FROM matches m CROSS JOIN total GROUP BY m.source ORDER BY likelihood DESC, m.source LIMIT {most}
    )
    SELECT {columns}, role, name, total.texts FROM likely JOIN texts USING (source) CROSS JOIN total"""


class Question(NamedTuple):
    """What is searched, and where.

    Attributes:
        chat_key: The chat's key.
        line_id: The line.
        patterns: Substrings of the texts in lower case; a text is found if it contains one of them.
        character: The character whose prompt it is, if known.
        now: The service's time.
        before_seq: Only texts about messages before this seq are found; None finds all.
        kinds_left_out: The kinds of sources that are not searched.
        left_out: Sources that are not searched.
        most_tokens: Longer messages are not searched.

    """

    chat_key: UUID
    line_id: UUID
    patterns: Sequence[str]
    character: str | None
    now: datetime
    before_seq: int | None = None
    kinds_left_out: Sequence[str] = ()
    left_out: Sequence[str] = ()
    most_tokens: int = MAX_MESSAGE_TOKENS


def write_search(layers: Sequence[Layer]) -> str:
    """Return the statement of a search over the texts of these layers, and over messages."""
    documents = write_documents(layers)
    of_layers = f"SELECT {COLUMNS}, NULL::text, NULL::text FROM ({documents}) AS of_layers UNION ALL"  # noqa: S608
    texts = f"{of_layers if documents else ''} {_MESSAGES}"
    return _SEARCH.format(texts=texts, columns=COLUMNS, most=MAX_CANDIDATES)


async def list_candidates(connection: Connection, statement: str, question: Question) -> list[asyncpg.Record]:
    """Return at most MAX_CANDIDATES texts that contain a pattern: the columns of `Document`, `role`, `name`, `texts`.

    `role` and `name` are those of a message, otherwise None; `texts` is the number of texts that were searched.
    """
    return await connection.fetch(statement, *question[:2], *question[3:-1], question.patterns, question.most_tokens)


async def list_message_ids(connection: Connection, line: tuple[UUID, UUID], seqs: Sequence[int]) -> dict[int, str]:
    """Return the ids of messages by their seqs."""
    rows = await connection.fetch(
        "SELECT seq, message_id FROM messages WHERE chat_key = $1 AND line_id = $2 AND seq = ANY ($3::int[])",
        *line,
        seqs,
    )
    return {row["seq"]: row["message_id"] for row in rows}
