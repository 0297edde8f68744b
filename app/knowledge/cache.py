"""Caches the facts of a user or a tenant for contexts, in the column `known` of the row in `scopes`.

A fact is a statement with the kind `fact` (`models.py`), and contexts read only live ones (`liveness.py`). The live
statements of a user or a tenant are the same on the current lines of all chats. So the facts are stored once, as JSON:
`{"fact": {"<character>": [[key, statement id, content, tokens, learnt at], …]}}`. The JSON contains the newest live
statement of each key; `learnt at` is in microseconds since 1970. A context of a line that is not current, or with the
option `before`, does not use the cache.
"""

from dataclasses import dataclass
from uuid import UUID

from app.kit.db import DbSession
from app.kit.ids import tenant_key
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.kit.scopes import raise_scope_of
from app.knowledge.liveness import write_is_live, write_newest

_OWNERS = f"""
    SELECT $1::uuid AS owner_key, '{NO_LINE}'::uuid AS line_id, 0 AS rank, d.character, NULL::text AS current_name
    FROM (SELECT DISTINCT character FROM statements WHERE owner_key = $1 AND line_id = '{NO_LINE}') AS d"""  # noqa: S608

_LIVE = write_is_live(chat="NULL::uuid", line="NULL::uuid", before="NULL::int")


def _write_rows(kind: str) -> str:
    return f"""
    SELECT jsonb_object_agg(by_character.character, by_character.rows) FROM (
        SELECT n.character, jsonb_agg(
            jsonb_build_array(n.key, n.statement_id, n.content, n.tokens, n.learnt_us) ORDER BY n.key) AS rows
        FROM ({write_newest(_OWNERS, _LIVE, kind, character="k.character")}) AS n GROUP BY n.character
    ) AS by_character"""  # noqa: S608


_REBUILD = f"""
    UPDATE scopes SET known = jsonb_strip_nulls(jsonb_build_object('fact', ({_write_rows("fact")})))
    WHERE owner_key = $1 AND line_id = '{NO_LINE}'"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class _Rebuild:
    """Rewrites the cache of a scope after the revision was raised, which locks the scope's row.

    Only an SQL command that begins after the row is locked sees all commits of other transactions to the scope.
    """

    key: UUID

    async def write(self, db_session: DbSession) -> None:
        await db_session.raw.execute(_REBUILD, self.key)


def note_change(db_session: DbSession, tenant: str, key: UUID) -> None:
    """Raise the revision of a user or a tenant, given by its key, and rebuild its cache, just before the commit."""
    is_tenant = key == tenant_key(tenant)
    rank = raise_scope_of(db_session, key, is_tenant=is_tenant)
    db_session.last_writes[rank, key, CHAT_WIDE] = _Rebuild(key)  # sorts after the raise, so it is written later
