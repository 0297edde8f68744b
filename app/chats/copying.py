"""Copies a line: one statement for each table that has lines, without knowing any layer.

A table takes part if its primary key begins with the key of a chat or an owner and a `line_id`. Rows of users and
tenants have no line and are never copied. How rows are copied is declared with the table (`kit.db.Table`).
The caller has locked the chat's current line before, in a statement of its own: each statement here sees what is
committed when it begins, and nothing may be written between two of them.
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
"""A chat's key, and the id of one of its lines."""

_CHATS = ChatLine.__tablename__
_LINE_KEYS = (["chat_key", "line_id"], ["owner_key", "line_id"])
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]  # only to write a column's type


async def copy_line(
    db_session: DbSession, source: Line, target: Line, *, until_seq: int | None, chat_values: Mapping[str, Any]
) -> None:
    """Copy all rows of a line that begin at or before `until_seq` (inclusive), or all there are.

    Args:
        db_session: Open unit of work, which has locked the current line of the source's chat.
        source: What is copied.
        target: The copy's place; no such line may exist.
        until_seq: The last seq that is copied; None for everything.
        chat_values: Columns of the chat's row that the copy holds instead, by their names in the database.

    Raises LookupError for a table that does not say where its rows begin, and what PostgreSQL raises where the copy
    would be a second current line of its chat, or a second checkpoint of its name.

    """
    # The chat's own row comes first: where the place is taken, that shows before all the others are written.
    for table in sorted(list_copied(), key=lambda table: (table.name != _CHATS, table.name)):
        values = chat_values if table.name == _CHATS else {}
        # The chat's row has no seq to begin at, so its statement has no place for one.
        until = () if until_seq is None or table.name == _CHATS else (until_seq,)
        statement = write_copy(table, values, cut=bool(until))
        await db_session.raw.execute(statement, *source, *target, *until, *values.values())


def list_copied() -> list[CoreTable]:
    """Return the tables whose rows belong, or can belong, to a line."""
    return [table for table in list_tables() if _key_of(table)[:2] in _LINE_KEYS and table.info.get("has_lines", True)]


def write_copy(table: CoreTable, values: Iterable[str] = (), *, cut: bool) -> str:
    """Return the statement that copies a table's rows of line ($1, $2) to line ($3, $4), if `cut` until seq $5.

    The columns named by `values` hold what the next arguments give. Raises LookupError for a table that does not say
    where its rows begin, even if the copy is not cut: the first copy that is cut must not be the one to find out.
    """
    if table.name != _CHATS and "begins" not in table.info:
        raise LookupError(f"the table {table.name} has lines, but does not say where its rows begin")
    copied = {column.name: str(column.info.get("copied_as", f'"{column.name}"')) for column in table.c}
    key = _key_of(table)
    copied |= {key[0]: "$3::uuid", "line_id": "$4::uuid"}
    for place, name in enumerate(values, start=6 if cut else 5):
        copied[name] = f"${place}::{_type_of(table.c[name])}"
    names = ", ".join(f'"{name}"' for name in copied)
    until = f" AND ({table.info['begins']}) <= $5" if cut else ""
    # In the key's order, so that the copy lies on disk as it is read, and so that the source is read by its key: a
    # line that makes up much of its table would otherwise have all of the table read.
    order = ", ".join(f'"{name}"' for name in key)
    return f"""INSERT INTO "{table.name}" ({names}) SELECT {", ".join(copied.values())} FROM "{table.name}"
        WHERE {key[0]} = $1 AND line_id = $2{until} ORDER BY {order}"""  # noqa: S608 - names of our own tables


def _key_of(table: CoreTable) -> list[str]:
    """The columns of the primary key, in its order."""
    return [column.name for column in table.primary_key]


def _type_of(column: Column[Any]) -> str:
    return column.type.compile(dialect=_DIALECT)
