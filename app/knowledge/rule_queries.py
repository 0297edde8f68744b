"""SQL of what rules have learnt from messages, without a model.

A teaching is the row that says which message taught a statement (`models.py`).
"""

from collections.abc import Sequence
from uuid import UUID

from app.kit.db import DbSession
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.kit.planner import ONE_LOOKUP_EACH
from app.knowledge.queries import Line

# Selects what rules have learnt, with three exceptions:
# - What a person has set, edited, pinned, archived or rated.
# - What was learnt before a person set, replaced or forgot the key. It is the history of the key. `remember` needs the
#   former texts of a memory, too: it compares new sentences with them, and does not learn what a person has replaced
#   or forgotten.
# - What was learnt in a wider scope, at any time, if a person has made a statement with the same key in the chat's own
#   scope, which is the nearest.
_LEARNT_BY_RULE = f"""
    t.chat_key = $1 AND t.line_id = $2 AND t.first_seq BETWEEN $3 AND $4 AND t.layer = ANY($5)
        AND t.message_id IS NOT NULL
        AND s.owner_key = coalesce(t.wide_key, t.chat_key)
        AND s.line_id = CASE WHEN t.wide_key IS NULL THEN '{CHAT_WIDE}' ELSE '{NO_LINE}' END::uuid
        AND s.statement_id = t.statement_id AND s.origin = 'extractive' AND s.kind IN ('fact', 'memory')
        AND NOT s.is_set AND NOT s.edited AND NOT s.pinned AND s.archived IS NULL
        AND coalesce(cardinality(s.chosen), 0) = 0 AND NOT EXISTS (
            SELECT FROM statements n WHERE n.owner_key = s.owner_key AND n.line_id = s.line_id AND n.kind = s.kind
                AND n.character = s.character AND n.key = s.key AND n.is_set
                AND (n.learnt_at, n.statement_id) > (s.learnt_at, s.statement_id) {ONE_LOOKUP_EACH})
        AND (t.wide_key IS NULL OR NOT EXISTS (
            SELECT FROM statements n WHERE n.owner_key = t.chat_key AND n.line_id = '{CHAT_WIDE}' AND n.kind = s.kind
                AND n.character = '' AND n.key = s.key AND n.is_set {ONE_LOOKUP_EACH}))"""  # noqa: S608

_LIST = f"SELECT DISTINCT s.statement_id FROM teachings t, statements s WHERE {_LEARNT_BY_RULE}"  # noqa: S608

_LIST_WIDE_KEYS = """
    SELECT DISTINCT wide_key FROM teachings
    WHERE chat_key = $1 AND line_id = $2 AND first_seq BETWEEN $3 AND $4 AND layer = ANY($5)
        AND message_id IS NOT NULL AND wide_key IS NOT NULL"""

_RETRACT = f"""
    DELETE FROM teachings t USING statements s WHERE {_LEARNT_BY_RULE}
    RETURNING t.wide_key, t.layer"""  # noqa: S608 - constants only


async def list_learnt_by_rule(
    db_session: DbSession, line: Line, first_seq: int, last_seq: int, layers: Sequence[str]
) -> set[UUID]:
    """Return the ids of the statements whose teachings `retract_learnt_by_rule` would delete now."""
    rows = await db_session.raw.fetch(_LIST, *line, first_seq, last_seq, layers)
    return {row["statement_id"] for row in rows}


async def list_wide_keys(
    db_session: DbSession, line: Line, first_seq: int, last_seq: int, layers: Sequence[str]
) -> set[UUID]:
    """Return the keys of the users and tenants in whose scopes `retract_learnt_by_rule` can delete something."""
    rows = await db_session.raw.fetch(_LIST_WIDE_KEYS, *line, first_seq, last_seq, layers)
    return {row["wide_key"] for row in rows}


async def retract_learnt_by_rule(
    db_session: DbSession, line: Line, first_seq: int, last_seq: int, layers: Sequence[str]
) -> tuple[set[UUID], set[str]]:
    """Delete the teachings with which rules have learnt from the messages `first_seq…last_seq` (inclusive) of a line.

    Only teachings for `layers` are deleted. A statement without another teaching is deleted by a trigger. Returns the
    keys of the users and tenants in whose scopes teachings were deleted, and the layers of the deleted teachings.
    """
    rows = await db_session.raw.fetch(_RETRACT, *line, first_seq, last_seq, layers)
    return {row["wide_key"] for row in rows if row["wide_key"]}, {row["layer"] for row in rows}
