"""SQL of what rules have learnt from messages, without a model."""

from uuid import UUID

from app.kit.db import DbSession
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.knowledge.queries import Line

# What a person has set, edited or decided about stays, although the service has learnt it by rule.
_LEARNT_BY_RULE = f"""
    t.chat_key = $1 AND t.line_id = $2 AND t.first_seq BETWEEN $3 AND $4 AND t.message_id IS NOT NULL
        AND s.owner_key = coalesce(t.wide_key, t.chat_key)
        AND s.line_id = CASE WHEN t.wide_key IS NULL THEN '{CHAT_WIDE}' ELSE '{NO_LINE}' END::uuid
        AND s.statement_id = t.statement_id AND s.origin = 'extractive' AND s.kind IN ('fact', 'memory')
        AND NOT s.is_set AND NOT s.edited AND NOT s.pinned AND s.archived IS NULL AND s.chosen IS NULL"""

_LIST = f"SELECT DISTINCT s.statement_id FROM teachings t, statements s WHERE {_LEARNT_BY_RULE}"  # noqa: S608

_RETRACT = f"""
    DELETE FROM teachings t USING statements s WHERE {_LEARNT_BY_RULE}
    RETURNING t.wide_key, t.layer"""  # noqa: S608 - constants only


async def list_learnt_by_rule(db_session: DbSession, line: Line, first_seq: int, last_seq: int) -> set[UUID]:
    """Return the ids of the statements whose teachings `retract_learnt_by_rule` would delete now."""
    return {row["statement_id"] for row in await db_session.raw.fetch(_LIST, *line, first_seq, last_seq)}


async def retract_learnt_by_rule(
    db_session: DbSession, line: Line, first_seq: int, last_seq: int
) -> tuple[set[UUID], set[str]]:
    """Delete the teachings of what rules have learnt from a range of messages (both inclusive) on a line.

    A statement without another teaching is deleted by a trigger. Returns the keys of the users and tenants in whose
    scopes something was retracted, and the layers.
    """
    rows = await db_session.raw.fetch(_RETRACT, *line, first_seq, last_seq)
    return {row["wide_key"] for row in rows if row["wide_key"]}, {row["layer"] for row in rows}
