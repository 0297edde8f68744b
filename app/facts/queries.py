"""SQL that selects facts for contexts, and as documents (texts that a search finds)."""

from app.kit.owners import NO_LINE
from app.knowledge.liveness import (
    CHAT_ITSELF,
    OWNERS_OF_CHAT,
    SCOPE_GIVEN,
    SOLE_CHARACTER,
    TENANT_KEY,
    write_is_live,
    write_newest,
)


def _write_rows(newest: str) -> str:
    """Return a scalar subquery of rows [rank, character, key, statement id, content, tokens, learnt at]."""
    return f"""(
        SELECT json_agg(json_build_array(n.rank, n.character, n.key, n.statement_id, n.content, n.tokens, n.learnt_us))
        FROM ({newest}) AS n)"""  # noqa: S608 - composed of constants


_LIVE = write_is_live(chat="c.chat_key", line="c.line_id", before="b.seq")
_LIVE_NOW = write_is_live(chat="c.chat_key", line="c.line_id", before="NULL::int")

NEWEST_OF_LINE = f"""
    SELECT json_build_object('rows', {_write_rows(write_newest(OWNERS_OF_CHAT, _LIVE, "fact"))})::text"""
"""A scalar subquery of the newest live fact of each key, in each scope that the line sees."""

_WIDE = f"FROM scopes s WHERE s.line_id = '{NO_LINE}' AND s.owner_key"

NEWEST_OF_CURRENT = f"""
    SELECT json_build_object(
        'rows', {_write_rows(write_newest(CHAT_ITSELF, _LIVE_NOW, "fact"))},
        'user', (SELECT s.known -> 'fact' -> '' {_WIDE} = c.user_key),
        'character', (
            SELECT json_agg(json_build_array(p.value ->> 'name', u.known -> named.name))
            FROM (SELECT s.known -> 'fact' AS known {_WIDE} = c.user_key) AS u
            CROSS JOIN jsonb_array_elements(c.characters) AS p CROSS JOIN LATERAL (
                SELECT p.value ->> 'name' UNION SELECT jsonb_array_elements_text(p.value -> 'aliases')
            ) AS named (name)
            WHERE u.known ? named.name),
        'global', (SELECT s.known -> 'fact' -> '' {_WIDE} = {TENANT_KEY}))::text"""  # noqa: S608
"""Selects what `NEWEST_OF_LINE` selects, for the current line. It reads the column `scopes.known`, which caches the
facts of the user, of the user with each of the chat's characters, and of the tenant."""

DOCUMENTS = f"""
    SELECT 'fact:' || f.statement_id, f.key || ': ' || f.content, 0, 0, NULL::text, NULL::float8 FROM (
        SELECT DISTINCT ON (n.key) n.* FROM ({write_newest(OWNERS_OF_CHAT, _LIVE_NOW, "fact")}) AS n
        WHERE n.character IS NULL OR n.character = coalesce(q.named, {SOLE_CHARACTER})
        ORDER BY n.key, n.rank, n.learnt_us DESC, n.statement_id DESC) AS f
    WHERE f.content IS NOT NULL"""  # noqa: S608

_ANYWHERE = write_is_live(chat="NULL::uuid", line="NULL::uuid", before="NULL::int")

SCOPE_DOCUMENTS = f"""
    SELECT 'fact:' || f.statement_id, f.key || ': ' || f.content, NULL::text, NULL::float8, 'fact', f.key,
        f.statement_id, f.learnt_us, NULL::bytea
    FROM ({write_newest(SCOPE_GIVEN, _ANYWHERE, "fact")}) AS f WHERE f.content IS NOT NULL"""  # noqa: S608
