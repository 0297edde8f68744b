"""Which tables a vault contains, and the SQL that reads their rows as JSON and inserts them again.

Every table with a column `chat_key` is in a vault unless `LEFT_OUT` names it, so a new table of a layer is in it
without further code. Of the tables with an `owner_key` and no `chat_key`, only `statements` and a part of `work` are in
a vault; `LEFT_OUT` must name all others. PostgreSQL writes and reads the JSON, so every value returns exactly as it
was. Of `work`, a vault contains the items about messages that no row of a layer is about yet (`Layer.planned`).

A row in a vault has no key of a chat, user or tenant, because an import writes the keys of the new chat, its user and
its tenant. Rows of `statements` and `teachings` have the field `scope` instead: `chat`, `user` or `tenant`. A
*statement* is one fact, operation on a block, or memory; a *teaching* records from which message it was learnt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import DateTime, Text
from sqlalchemy import Table as CoreTable
from sqlalchemy.types import String

from app.chats.models import ChatLine, Message
from app.kit.db import list_tables
from app.kit.owners import CHAT_WIDE, NO_LINE
from app.kit.work_queue import WorkItem
from app.knowledge.models import Statement, Teaching
from app.passages.progress import NAME, VECTORS
from app.vault.row_forms import Check, make_check

LEFT_OUT: Mapping[str, str] = {
    "passages": "an index of texts that the vault contains",
    "scopes": "revisions and a cache of users and tenants",
    "text_vectors": "an index of texts that the vault contains",
    "tool_calls": "a log, whose answers can contain what other chats taught; what the calls wrote is in the vault",
    "vectors": "an index of texts that the vault contains",
}
"""The tables with a key of a chat, user or tenant that are not in a vault, and why."""

CURSORS_LEFT_OUT = (NAME, VECTORS)
"""The cursors of a chat that are not in a vault: they only say how much of the chat an index of `LEFT_OUT` covers."""

CHATS, MESSAGES, WORK = ChatLine.__tablename__, Message.__tablename__, WorkItem.__tablename__
STATEMENTS, TEACHINGS = Statement.__tablename__, Teaching.__tablename__

_KEYS = ("chat_key", "owner_key", "wide_key")
_PLANNED = ("at_seq", "key", "layer", "line_id", "payload")
"""The columns of `work` that are in a vault. An import schedules the items again, without attempts."""

_LEFT_OUT_OF = {
    # An import makes new values, except for `cut_waits`: the next append after it decides whether a cut waits.
    CHATS: ("tenant", "chat_id", "user_key", "revision", "base_revision", "changed", "cut_waits", *_KEYS),
    STATEMENTS: ("line_id", *_KEYS),
}

_SCOPES = "(VALUES (0, 'chat', $1::uuid), (1, 'user', $2::uuid), (2, 'tenant', $3::uuid)) AS o (rank, scope, key)"
_SCOPE_KEY = "CASE e ->> 'scope' WHEN 'user' THEN $3::uuid WHEN 'tenant' THEN $4::uuid END"
_REPLACED = f"""EXISTS (SELECT FROM statements s JOIN statements n USING (owner_key, line_id, kind, character, key)
                WHERE s.owner_key = t.{{0}} AND s.line_id = '{NO_LINE}' AND s.statement_id = t.statement_id
                    AND s.kind <> 'block' AND n.is_set AND n.learnt_at >= s.learnt_at)"""
"""Whether a person has replaced or deleted a fact or memory of a user or tenant after it was learnt.

An export leaves it out, so that an import does not restore it.
"""

_OF_ROW = 'FROM jsonb_array_elements($2::jsonb) AS e CROSS JOIN LATERAL jsonb_populate_record(NULL::"{}", e) AS r'

DIFFERING = f"""
    SELECT count(*)::int {_OF_ROW.format(STATEMENTS)}
    JOIN statements s ON s.owner_key = {_SCOPE_KEY} AND s.line_id = '{NO_LINE}' AND s.statement_id = r.statement_id
    WHERE $1::uuid IS NOT NULL AND (s.kind, s.character, s.key, s.content, s.operation, s.pattern, s.learnt_at)
        IS DISTINCT FROM (r.kind, r.character, r.key, r.content, r.operation, r.pattern, r.learnt_at)"""  # noqa: S608
"""Counts the rows of $2 for which the user ($3) or the tenant ($4) has a statement with the same id, but other content.
"""


@dataclass(frozen=True, slots=True)
class VaultTable:
    """A table in a vault.

    Attributes:
        name: Its name.
        columns: The columns that a vault contains. A row of a vault may lack those that have a default.
        select: The query of a chat's rows as JSON, in an order that does not depend on the database. Its parameters
            are the chat's key and, if the table `has_scopes`, the keys of the user and the tenant whose statements
            are exported, or NULL.
        has_scopes: Whether rows belong to a scope.
        times: The columns that contain times. PostgreSQL accepts times that Python cannot represent.

    """

    name: str
    columns: frozenset[str]
    select: str
    has_scopes: bool
    times: frozenset[str]

    def make_check(self) -> Check:
        """Return the check of the values of its rows."""
        table = next(table for table in list_tables() if table.name == self.name)
        return make_check(table, sorted(self.columns))

    def write_insert(self, columns: Sequence[str]) -> str:
        """Return the SQL that inserts rows into chat $1; $2 is a JSON array of the rows, objects with these columns.

        If the table `has_scopes`, $3 and $4 are the keys of the user and the tenant; NULL puts their rows into the
        scope of the chat. For `chats`, $3 … $6 are tenant, chat_id, user_id and user_key.
        """
        values = {name: f'r."{name}"' for name in columns}
        conflict = ""
        if self.name == CHATS:
            values |= {"chat_key": "$1", "tenant": "$3", "chat_id": "$4", "user_id": "$5", "user_key": "$6::uuid"}
        elif self.name == STATEMENTS:
            is_wide = f"({_SCOPE_KEY}) IS NOT NULL"
            values |= {
                "owner_key": f"coalesce({_SCOPE_KEY}, $1)",
                "line_id": f"CASE WHEN {is_wide} THEN '{NO_LINE}' ELSE '{CHAT_WIDE}' END::uuid",
                "character": f"CASE WHEN {is_wide} THEN r.character ELSE '' END",
            }
            conflict = " ON CONFLICT (owner_key, line_id, statement_id) DO NOTHING"
        else:
            values["chat_key"] = "$1"
            if self.name == TEACHINGS:
                values["wide_key"] = _SCOPE_KEY
        names = ", ".join(f'"{name}"' for name in values)
        given = f"SELECT {', '.join(values.values())} {_OF_ROW.format(self.name)}"
        return f'INSERT INTO "{self.name}" ({names}) {given}{conflict}'


def list_vault_tables() -> list[VaultTable]:
    """Return the tables of a vault in the order of its rows: the chat first, statements before their teachings."""
    tables = [table for table in list_tables() if {"chat_key", "owner_key"} & set(table.c.keys())]
    chosen = [table for table in tables if table.name not in LEFT_OUT]
    return [_describe(table) for table in sorted(chosen, key=lambda table: (table.name != CHATS, table.name))]


def _describe(table: CoreTable) -> VaultTable:
    """Return the description of a table. Raises LookupError if its rows belong to users or tenants, but to no chat."""
    left_out = _LEFT_OUT_OF.get(table.name, _KEYS)
    columns = frozenset(str(name) for name in table.c.keys() if name not in left_out)  # noqa: SIM118 - of columns
    times = frozenset(str(one.name) for one in table.c if isinstance(one.type, DateTime))
    row = f"to_jsonb(t) - ARRAY[{', '.join(repr(name) for name in left_out)}]"
    if table.name == STATEMENTS:
        select = f"""SELECT (({row}) || jsonb_build_object('scope', o.scope))::text FROM {_SCOPES}
            JOIN statements t ON t.owner_key = o.key
                AND t.line_id = CASE o.rank WHEN 0 THEN '{CHAT_WIDE}' ELSE '{NO_LINE}' END::uuid
            WHERE o.rank = 0 OR EXISTS (SELECT FROM teachings k
                WHERE k.statement_id = t.statement_id AND k.chat_key = $1 AND k.wide_key = o.key)
                AND NOT {_REPLACED.format("owner_key")}
            ORDER BY o.rank, t.statement_id"""  # noqa: S608
        return VaultTable(table.name, columns | {"scope"}, select, has_scopes=True, times=times)
    if table.name == WORK:
        fields = ", ".join(f"'{name}', t.{name}" for name in _PLANNED)
        select = f"""SELECT jsonb_build_object({fields})::text FROM work t
            WHERE t.owner_key = $1 AND t.payload ? 'last_seq'
            ORDER BY t.line_id, t.layer COLLATE "C", t.key COLLATE "C" """  # noqa: S608
        return VaultTable(table.name, frozenset(_PLANNED), select, has_scopes=False, times=frozenset())
    if "chat_key" not in table.c:
        raise LookupError(f"the table {table.name} is neither in a vault nor among the tables that are left out")
    order = ", ".join(_order(table, name) for name in table.primary_key.columns.keys())  # noqa: SIM118 - of columns
    if table.name == TEACHINGS:
        scope = "CASE WHEN t.wide_key IS NULL THEN 'chat' WHEN t.wide_key = $2::uuid THEN 'user' ELSE 'tenant' END"
        select = f"""SELECT (({row}) || jsonb_build_object('scope', {scope}))::text FROM teachings t
            WHERE t.chat_key = $1 AND (t.wide_key IS NULL OR (t.wide_key IN ($2::uuid, $3::uuid)
                AND NOT {_REPLACED.format("wide_key")}))
            ORDER BY {order}"""  # noqa: S608
        return VaultTable(table.name, columns | {"scope"}, select, has_scopes=True, times=times)
    if table.name == CHATS:
        cursors = ", ".join(repr(name) for name in CURSORS_LEFT_OUT)
        row = f"({row}) || jsonb_build_object('cursors', t.cursors - ARRAY[{cursors}])"
        order = f"t.line_status <> 'current', {order}"
    select = f'SELECT ({row})::text FROM "{table.name}" t WHERE t.chat_key = $1 ORDER BY {order}'  # noqa: S608
    return VaultTable(table.name, columns, select, has_scopes=False, times=times)


def _order(table: CoreTable, name: str) -> str:
    """Return a sort key; that of a text does not depend on the collation of the database."""
    is_text = isinstance(table.c[name].type, String | Text)
    return f'"{name}" COLLATE "C"' if is_text else f'"{name}"'
