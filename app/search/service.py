"""Searches what a line knows: the candidates are read in one statement, and ranked by pure functions."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import asyncpg

from app.chats.characters import word_spoken
from app.kit.db import Connection
from app.layers.layer import Layer
from app.passages.keys import list_wanted
from app.passages.words import list_patterns
from app.search.choice import Hit
from app.search.queries import MAX_MESSAGE_TOKENS, QueryVector, Question, Statements, list_candidates, write_search
from app.search.ranking import Candidate, find_similarities, rank

MOST_CHARS_INLINE = 8_000
"""More text than this is ranked in a thread: it would hold up other requests for some milliseconds."""

_statements: dict[bool, Statements] = {}  # of the layers that this process searches, by whether they have vectors


class Searched(NamedTuple):
    """The line that is searched.

    Attributes:
        chat_key: The chat's key.
        line_id: The line.
        head_seq: The newest seq, or that of the message before `before_seq`.
        character: The character whose prompt it is, if known.
        speakers: The names of the speakers of messages without a name, by role.
        before_seq: Only what was known before this message is found; None finds all.
        only_chat: Whether only what the chat itself knows is found, and nothing of wider scopes.

    """

    chat_key: UUID
    line_id: UUID
    head_seq: int
    character: str | None
    speakers: Mapping[str, str]
    before_seq: int | None = None
    only_chat: bool = False


def search_layers(layers: Sequence[Layer]) -> None:
    """Search the texts of these layers in this process. Called by `app/registry.py`."""
    _statements.update(
        {with_vectors: write_search(layers, with_vectors=with_vectors) for with_vectors in (False, True)}
    )


def statements_in_use(*, with_vectors: bool = False) -> Statements:
    """Return the SQL statements of searches. Raises RuntimeError if no layers are registered yet."""
    if not _statements:
        raise RuntimeError("no layers are registered for searches: import app.registry first")
    return _statements[with_vectors]


async def search(
    connection: Connection, line: Searched, terms: Sequence[str], meaning: QueryVector | None = None, *, now: datetime
) -> list[Hit]:
    """Return the texts of a line that have one of the terms, a similar word or a similar meaning, best first."""
    return await rank_found(await find(connection, line, terms, meaning, now=now), line, terms)


async def find(
    connection: Connection,
    line: Searched,
    terms: Sequence[str],
    meaning: QueryVector | None = None,
    *,
    now: datetime,
    kinds_left_out: Sequence[str] = (),
    left_out: Sequence[str] = (),
    most_tokens: int = MAX_MESSAGE_TOKENS,
) -> list[asyncpg.Record]:
    """Return the texts of a line that may have one of the terms or a similar word, for `rank_found`.

    With `meaning`, messages with a similar meaning are returned, too. Messages of the history are not searched.
    `kinds_left_out` and `left_out` are kinds and sources that are not searched either, nor are messages with more than
    `most_tokens`.
    """
    question = Question(
        line.chat_key,
        line.line_id,
        list_patterns(terms),
        list_wanted(terms),
        line.character,
        now,
        line.before_seq,
        kinds_left_out,
        left_out,
        min(most_tokens, MAX_MESSAGE_TOKENS),
    )
    used = statements_in_use(with_vectors=meaning is not None)
    return await list_candidates(connection, used.own_recall if line.only_chat else used.recall, question, meaning)


async def rank_found(rows: Sequence[asyncpg.Record], line: Searched, terms: Sequence[str]) -> list[Hit]:
    """Return what `find` found, best first. Long texts are ranked in a thread."""
    if sum(len(row["text"]) for row in rows) <= MOST_CHARS_INLINE:
        return _rank(rows, line, terms)
    return await asyncio.to_thread(_rank, rows, line, terms)


def _rank(rows: Sequence[asyncpg.Record], line: Searched, terms: Sequence[str]) -> list[Hit]:
    if not rows:
        return []
    found = {row["source"]: (row, word_spoken(row["text"], row["role"], row["name"], line.speakers)) for row in rows}
    similarities = find_similarities((row["source"], row["similarity"]) for row in rows)
    candidates = [
        Candidate(
            source,
            text,
            row["importance"],
            row["last_seq"],
            row["last_seq"] / line.head_seq if line.head_seq else 0.0,
            line.line_id if row["role"] else None,
            similarities.get(source),
        )
        for source, (row, text) in found.items()
    ]
    ranked = rank(terms, candidates, total=rows[0]["texts"], lowest=rows[0]["lowest"])
    hits = []
    for one in ranked:
        row, text = found[one.source]
        hits.append(Hit(one.source, text, row["category"], row["first_seq"], row["last_seq"], one.score, one.parts))
    return hits
