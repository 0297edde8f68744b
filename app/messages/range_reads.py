"""Reads the number, the ids and the times of the messages in ranges of a line, without their texts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from app.kit.db import Connection, DbSession
from app.kit.planner import ONE_LOOKUP_EACH
from app.kit.wire import MAX_SEQ
from app.messages.rules import IS_NOT_DELETED, SPEAKS

_ON_LINE = "chat_key = $1 AND line_id = $2"

_HAS_MESSAGE = f"SELECT EXISTS (SELECT FROM messages WHERE {_ON_LINE} AND seq > $3 AND {IS_NOT_DELETED})"  # noqa: S608 - constants only

_ABOVE_HEAD = """
    SELECT EXISTS (SELECT FROM chats c WHERE c.chat_key = $1 AND c.head_seq < (
        SELECT max(m.seq) FROM messages m WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id))"""

_WRONG_COUNTER = """
    SELECT f.name, f.counted
    FROM chats c CROSS JOIN LATERAL (
        SELECT coalesce(max(seq), 0) AS newest, count(*) FILTER (WHERE deleted_at IS NULL) AS messages,
            coalesce(sum(tokens) FILTER (WHERE deleted_at IS NULL), 0) AS tokens
        FROM messages m WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id) AS m
    CROSS JOIN LATERAL (VALUES
        ('head_seq', c.head_seq <> m.newest, m.newest::text),
        ('message_count', c.message_count <> m.messages, m.messages::text),
        ('token_count', c.token_count <> m.tokens, m.tokens::text),
        ('history_messages', c.history_messages > m.messages, 'at most ' || m.messages),
        ('turn_count', c.turn_count > m.messages, 'at most ' || m.messages)) AS f (name, is_wrong, counted)
    WHERE c.chat_key = $1 AND f.is_wrong LIMIT 1"""

_LAST_NOT_DELETED = f"""
    SELECT seq FROM messages
    WHERE {_ON_LINE} AND seq BETWEEN $3 AND $4 AND {IS_NOT_DELETED}
    ORDER BY seq DESC LIMIT 1"""  # noqa: S608

_IN_RANGE = f"""
    FROM messages
    WHERE {_ON_LINE} AND seq BETWEEN r.first_seq AND r.last_seq AND {IS_NOT_DELETED}"""

_COUNTED = "r.first_seq, CASE WHEN counted.messages <= $5 THEN counted.messages END AS messages"

_FROM_RANGES = f"""
    FROM unnest($3::int[], $4::int[]) AS r (first_seq, last_seq) CROSS JOIN LATERAL (
        SELECT count(*)::int AS messages FROM (SELECT {_IN_RANGE} LIMIT $5 + 1) AS found {ONE_LOOKUP_EACH}
    ) AS counted"""  # noqa: S608

_COUNTS = f"SELECT {_COUNTED} {_FROM_RANGES}"

_SUMMARIES = f"""
    SELECT {_COUNTED},
        (SELECT message_id {_IN_RANGE} ORDER BY seq LIMIT 1) AS first_message_id,
        (SELECT message_id {_IN_RANGE} ORDER BY seq DESC LIMIT 1) AS last_message_id
    {_FROM_RANGES}"""

_IN_SPAN = f"{_ON_LINE} AND seq >= $3 AND seq < $4"

# The message that a reply answers can be before the span.
_TURNS = f"""
    SELECT EXISTS (SELECT FROM messages WHERE {_IN_SPAN} AND {IS_NOT_DELETED}) AS has_messages, (
        SELECT count(*)::int FROM (
            SELECT seq, role, lag(role) OVER (ORDER BY seq) AS former FROM messages
            WHERE {_ON_LINE} AND {SPEAKS} AND seq < $4 AND seq >= coalesce((
                SELECT seq FROM messages WHERE {_ON_LINE} AND {SPEAKS} AND seq < $3
                ORDER BY seq DESC LIMIT 1), $3)
        ) AS spoken WHERE seq >= $3 AND role = 'assistant' AND former = 'user') AS turns"""  # noqa: S608

_SENT_FROM = f"""
    SELECT (
        SELECT sent_at FROM messages WHERE {_ON_LINE} AND seq >= $3 ORDER BY seq LIMIT 1
    ) AS sent_at, time_zone
    FROM chats WHERE {_ON_LINE}"""  # noqa: S608

_IDS = f"SELECT seq, message_id FROM messages WHERE {_ON_LINE} AND seq = ANY ($3::int[])"  # noqa: S608

_NEWEST_OF_RANGES = f"""
    SELECT coalesce(array_agg(m.message_id ORDER BY m.seq) FILTER (WHERE m.seq IS NOT NULL), '{{}}') AS message_ids,
        max(m.sent_at) FILTER (WHERE m.seq = r.last_seq) AS last_sent_at
    FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::int[]) WITH ORDINALITY
        AS r (chat_key, line_id, first_seq, last_seq, place)
    LEFT JOIN LATERAL (
        SELECT message_id, seq, sent_at FROM messages
        WHERE chat_key = r.chat_key AND line_id = r.line_id AND seq BETWEEN r.first_seq AND r.last_seq
            AND {IS_NOT_DELETED}
        ORDER BY seq DESC LIMIT $5) AS m ON true
    GROUP BY r.place, r.last_seq ORDER BY r.place"""  # noqa: S608

_STRETCHES = f"""
    SELECT min(seq) AS first_seq, max(seq) AS last_seq, min(sent_at) AS first_sent_at, max(sent_at) AS last_sent_at
    FROM (
        SELECT seq, sent_at, (row_number() OVER (ORDER BY seq) - 1) / $3::int AS stretch
        FROM messages WHERE {_ON_LINE} AND {IS_NOT_DELETED}) AS numbered
    GROUP BY stretch ORDER BY stretch"""  # noqa: S608


class RangeSummary(NamedTuple):
    """The messages of a range that are not deleted.

    Attributes:
        messages: How many there are; None if there are more than the query counts.
        first_message_id: The id of the first of them, or None.
        last_message_id: The id of the last of them, or None.

    """

    messages: int | None
    first_message_id: str | None
    last_message_id: str | None


class NewestOfRange(NamedTuple):
    """The newest messages of a range that are not deleted.

    Attributes:
        message_ids: Their ids, in order.
        last_sent_at: When the message at the last seq of the range was sent; None if it is deleted or does not exist.

    """

    message_ids: Sequence[str]
    last_sent_at: datetime | None


class Stretch(NamedTuple):
    """Consecutive messages: the seqs of the first and the last one, and the first and last time of sending."""

    first_seq: int
    last_seq: int
    first_sent_at: datetime
    last_sent_at: datetime


async def has_message_after(db_session: DbSession, chat_key: UUID, line_id: UUID, seq: int) -> bool:
    """Return whether a message that is not deleted follows a seq."""
    return bool(await db_session.raw.fetchval(_HAS_MESSAGE, chat_key, line_id, seq))


async def has_message_above_head(db_session: DbSession, chat_key: UUID) -> bool:
    """Return whether a line of a chat has messages after its `head_seq`."""
    return bool(await db_session.raw.fetchval(_ABOVE_HEAD, chat_key))


async def find_wrong_counter(db_session: DbSession, chat_key: UUID) -> tuple[str, str] | None:
    """Return a column of a chat's line that disagrees with the line's messages, and the right value; None without one.

    Of `history_messages` and `turn_count`, only the limit is checked.
    """
    row = await db_session.raw.fetchrow(_WRONG_COUNTER, chat_key)
    return (row["name"], row["counted"]) if row else None


async def find_last_not_deleted(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> int | None:
    """Return the seq of the last message of a range (inclusive) that is not deleted, or None."""
    found: int | None = await db_session.raw.fetchval(_LAST_NOT_DELETED, chat_key, line_id, first_seq, last_seq)
    return found


async def count_in_ranges(
    db_session: DbSession, chat_key: UUID, line_id: UUID, ranges: Sequence[tuple[int, int]], *, most: int
) -> dict[int, int | None]:
    """Return how many messages each of `ranges` (inclusive) has, by its first seq, without deleted ones.

    At most `most` messages of a range are counted; if the range has more, the number is None.
    """
    rows = await db_session.raw.fetch(_COUNTS, chat_key, line_id, *_columns_of(ranges), most)
    return {row["first_seq"]: row["messages"] for row in rows}


async def summarise_ranges(
    db_session: DbSession, chat_key: UUID, line_id: UUID, ranges: Sequence[tuple[int, int]], *, most: int
) -> dict[int, RangeSummary]:
    """Return the RangeSummary of each of `ranges` (inclusive), by the first seq of the range.

    Messages are counted as in `count_in_ranges`.
    """
    rows = await db_session.raw.fetch(_SUMMARIES, chat_key, line_id, *_columns_of(ranges), most)
    return {
        row["first_seq"]: RangeSummary(row["messages"], row["first_message_id"], row["last_message_id"]) for row in rows
    }


async def count_turns_between(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, before_seq: int
) -> tuple[bool, int]:
    """Return whether the range (end exclusive) has messages that are not deleted, and how many turns end in it."""
    row = await db_session.raw.fetchrow(_TURNS, chat_key, line_id, first_seq, before_seq)
    return (False, 0) if row is None else (row["has_messages"], row["turns"])


async def find_sent_at_and_zone(
    db_session: DbSession, chat_key: UUID, line_id: UUID, from_seq: int
) -> tuple[datetime | None, str] | None:
    """Return when the first message from a seq on was sent, even if it is deleted, and the line's time zone.

    The time is None if there is no such message. The result is None if there is no such line.
    """
    row = await db_session.raw.fetchrow(_SENT_FROM, chat_key, line_id, from_seq)
    return None if row is None else (row["sent_at"], row["time_zone"])


async def list_message_ids(connection: Connection, line: tuple[UUID, UUID], seqs: Sequence[int]) -> dict[int, str]:
    """Return the ids of messages by their seqs, even if the messages are deleted."""
    return {row["seq"]: row["message_id"] for row in await connection.fetch(_IDS, *line, seqs)}


async def list_newest_of_ranges(
    connection: Connection, ranges: Sequence[Sequence[Any]], most: int
) -> list[NewestOfRange]:
    """Return the newest messages, at most `most`, of each range (chat's key, line's id, first and last seq)."""
    rows = await connection.fetch(_NEWEST_OF_RANGES, *map(list, zip(*ranges, strict=True)), most)
    return [NewestOfRange(row["message_ids"], row["last_sent_at"]) for row in rows]


async def list_stretches(db_session: DbSession, chat_key: UUID, line_id: UUID, messages: int) -> list[Stretch]:
    """Divide the messages of a line that are not deleted into stretches of `messages` each; the last can be shorter."""
    return [Stretch(*row) for row in await db_session.raw.fetch(_STRETCHES, chat_key, line_id, messages)]


def _columns_of(ranges: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [first for first, _ in ranges], [min(last, MAX_SEQ) for _, last in ranges]
