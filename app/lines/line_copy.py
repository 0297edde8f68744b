"""Copies a line, with one statement for each table that has lines and without knowledge of any layer.

A table takes part if its primary key begins with `chat_key` or `owner_key`, followed by `line_id`, unless its info sets
`has_lines` to False. Rows of users and tenants have the `line_id` NO_LINE, so they are never copied. Each table
declares how its rows are copied, and at which seq a row begins (`kit.db.Table`).

The caller must have locked the chat's current line in an earlier statement: each statement here sees what is committed
when it begins, and no other transaction may write to the line between two of them.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Column
from sqlalchemy import Table as CoreTable
from sqlalchemy.dialects import postgresql

from app.chats.models import ChatLine
from app.kit.db import DbSession, list_tables

Line = tuple[UUID, UUID]
"""A chat's key and the id of one of its lines."""

_CHATS = ChatLine.__tablename__
_LINE_KEYS = (["chat_key", "line_id"], ["owner_key", "line_id"])
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]  # only to write a column's type


async def copy_line(
    db_session: DbSession, source: Line, target: Line, *, until_seq: int | None, chat_values: Mapping[str, Any]
) -> None:
    """Copy the rows of a line that begin at or before `until_seq` (inclusive), or all of its rows.

    Args:
        db_session: Open unit of work, which has locked the current line of the source's chat.
        source: The line to copy.
        target: The new line; it must not exist yet.
        until_seq: The last seq to copy; None copies everything.
        chat_values: Values for the row in `chats` that differ from the source, by the column's name in the database.

    Raises LookupError for a table that does not declare where its rows begin, and asyncpg's UniqueViolationError if
    the copy would be a second current line of its chat or a second checkpoint with its name.

    """
    # The row in `chats` comes first: if the target is taken, the copy fails before any other row is written.
    for table in sorted(list_copied(), key=lambda table: (table.name != _CHATS, table.name)):
        values = chat_values if table.name == _CHATS else {}
        # The row in `chats` does not begin at a seq, so its statement has no parameter for one.
        until = () if until_seq is None or table.name == _CHATS else (until_seq,)
        statement = write_copy(table, values, shortened=bool(until))
        await db_session.raw.execute(statement, *source, *target, *until, *values.values())


def list_copied() -> list[CoreTable]:
    """Return the tables whose rows belong, or can belong, to a line."""
    return [table for table in list_tables() if _key_of(table)[:2] in _LINE_KEYS and table.info.get("has_lines", True)]


def write_copy(table: CoreTable, values: Iterable[str] = (), *, shortened: bool) -> str:
    """Return the statement that copies a table's rows of line ($1, $2) to line ($3, $4), up to seq $5 if `shortened`.

    The next parameters are the values of the columns that `values` names. Raises LookupError for a table that does not
    declare where its rows begin, even if `shortened` is false, so that the error appears with the first copy of any
    kind.
    """
    if table.name != _CHATS and "begins" not in table.info:
        raise LookupError(f"the table {table.name} has lines, but its info has no `begins`")
    copied = {column.name: str(column.info.get("copied_as", f'"{column.name}"')) for column in table.c}
    key = _key_of(table)
    copied |= {key[0]: "$3::uuid", "line_id": "$4::uuid"}
    for number, name in enumerate(values, start=6 if shortened else 5):
        copied[name] = f"${number}::{_type_of(table.c[name])}"
    names = ", ".join(f'"{name}"' for name in copied)
    until = f" AND ({table.info['begins']}) <= $5" if shortened else ""
    # Ordered by the key for two reasons: the copy is stored in the order in which it is read, and PostgreSQL reads the
    # source by its key. Without the order, it scans the whole table for a line that makes up much of the table.
    order = ", ".join(f'"{name}"' for name in key)
    return f"""INSERT INTO "{table.name}" ({names}) SELECT {", ".join(copied.values())} FROM "{table.name}"
        WHERE {key[0]} = $1 AND line_id = $2{until} ORDER BY {order}"""  # noqa: S608 - names of our own tables


def _key_of(table: CoreTable) -> list[str]:
    """Return the columns of the primary key, in order."""
    return [column.name for column in table.primary_key]


def _type_of(column: Column[Any]) -> str:
    return column.type.compile(dialect=_DIALECT)
