"""SQL of what was learnt on a day: facts and memories, each with its value of that day."""

from datetime import datetime
from typing import NamedTuple

from app.kit.db import DbSession
from app.kit.owners import CHAT_WIDE
from app.kit.planner import ONE_LOOKUP_EACH
from app.knowledge.liveness import OWNERS_OF_CHAT, keep_to_chat, write_hash, write_is_live
from app.knowledge.reading import Viewpoint
from app.memories.queries import KIND

FACT = "fact"
"""The kind of statements that are facts; the log of a day has facts and memories."""

_IS_LIVE = write_is_live(chat="$1::uuid", line="$2::uuid", before="NULL::int")

_OF_KEY = """s.owner_key = o.owner_key AND s.line_id = o.line_id AND s.kind = k.kind AND s.character = o.character
                AND s.key = k.key"""


def _write_deciding(when: str) -> str:
    """Return a lateral subquery: the live statement about the key `k` that decides, of those that meet `when`."""
    return f"""(
        SELECT o.rank, n.* FROM owners o CROSS JOIN LATERAL (
            SELECT * FROM statements s WHERE {_OF_KEY} AND {when} AND {_IS_LIVE}
            ORDER BY s.learnt_at DESC, s.statement_id DESC LIMIT 1) AS n
        ORDER BY o.rank, n.learnt_at DESC, n.statement_id DESC LIMIT 1)"""  # noqa: S608 - constants only


# `keys` are those with a statement of the day, live or not. The value that a key had at the end of the day is listed if
# it was learnt on that day. Statements that only replaced it since then do not matter, unless a person wrote the
# present value (`now`): the former one may be wrong. Those that took the value away do, in the same scope or a nearer
# one. What a person put into the archive is left out, and so are the texts of wider scopes that the chat has forgotten
# (as in `queries.py`).
_LEARNT = f"""
    WITH owners AS MATERIALIZED (
        SELECT o.* FROM chats c CROSS JOIN LATERAL ({OWNERS_OF_CHAT}) AS o
        WHERE c.chat_key = $1 AND c.line_id = $2 AND (o.current_name IS NULL OR o.current_name = $3)
    ), keys AS MATERIALIZED (
        SELECT DISTINCT found.kind, found.key FROM owners o CROSS JOIN (VALUES ('{KIND}'), ('{FACT}')) AS kinds (kind)
        CROSS JOIN LATERAL (
            SELECT s.kind, s.key FROM statements s
            WHERE s.owner_key = o.owner_key AND s.line_id = o.line_id AND s.kind = kinds.kind
                AND s.character = o.character AND s.learnt_at >= $4 AND s.learnt_at < $5
            ORDER BY s.key {ONE_LOOKUP_EACH}) AS found
    )
    SELECT k.kind, k.key, held.content, held.category, now.content = held.content
    FROM keys k CROSS JOIN LATERAL {_write_deciding("s.learnt_at < $5")} AS held
    CROSS JOIN LATERAL {_write_deciding("true")} AS now
    WHERE held.learnt_at >= $4 AND held.content IS NOT NULL
        AND (now.content = held.content OR now.origin <> 'person') AND NOT EXISTS (
            SELECT FROM owners o CROSS JOIN LATERAL (
                SELECT FROM statements s WHERE {_OF_KEY} AND s.content IS NULL
                    AND (s.learnt_at, s.statement_id) > (held.learnt_at, held.statement_id) AND {_IS_LIVE}
                {ONE_LOOKUP_EACH}) AS taken_away
            WHERE o.rank <= held.rank)
        AND (k.kind = '{FACT}' OR now.archived IS NOT TRUE)
        AND (k.kind = '{FACT}' OR held.rank = 0 OR held.is_set OR {write_hash("held.content")} <> ALL (ARRAY(
            SELECT unnest(s.forgotten) FROM statements s
            WHERE s.owner_key = $1 AND s.line_id = '{CHAT_WIDE}' AND s.kind = '{KIND}' AND s.character = ''
                AND s.forgotten IS NOT NULL AND {_IS_LIVE})))
    ORDER BY k.kind = '{FACT}', held.learnt_at, CASE k.kind WHEN '{FACT}' THEN held.statement_id::text ELSE k.key END
    """  # noqa: S608
_LEARNT_ITSELF = keep_to_chat(_LEARNT)


class Learnt(NamedTuple):
    """A fact or a memory with its value of a day.

    Attributes:
        kind: `KIND` for a memory, FACT for a fact.
        key: The id of the memory, or the name of the fact.
        content: The text of the memory, or the value of the fact.
        category: The category of a memory, if it has one.
        holds: Whether this is also the present value.

    """

    kind: str
    key: str
    content: str
    category: str | None
    holds: bool


async def list_learnt(db_session: DbSession, view: Viewpoint, first_at: datetime, until: datetime) -> list[Learnt]:
    """Return the memories and then the facts that were learnt from `first_at` on and before `until`, oldest first.

    Each has the value that held at `until` by what is live now on the line of the view. Values that were replaced
    since, and memories that have faded into the archive, are included. What was forgotten or deleted since, what a
    person replaced by a text of their own, or put into the archive, is not. Raises ValueError if the view is not that
    of a line.
    """
    if view.line is None:
        raise ValueError("the view must be that of a line")
    query = _LEARNT_ITSELF if view.only_chat else _LEARNT
    rows = await db_session.raw.fetch(query, *view.line, view.character, first_at, until)
    return [Learnt(*row) for row in rows]
