"""The state of a layer on a line, as JSON."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import LargeBinary, select, text
from sqlalchemy import Table as CoreTable

from app.kit.db import DbSession
from app.layers.layer import Layer
from app.lines.line_copy import Line

_OF_THE_LINE = {"chat_key", "owner_key", "line_id"}


async def read_state(db_session: DbSession, layer: Layer, line: Line, *, only_chat: bool = False) -> Any:
    """Return the result of the layer's `export_state`; without one, the rows of its tables by the table's name.

    With `only_chat`, a layer that also knows something in wider scopes leaves that out.
    """
    if layer.export_state is not None:
        return await layer.export_state(db_session, line, only_chat=only_chat)
    return {str(table.name): await _list_rows(db_session, layer, table, line) for table in layer.tables}


async def _list_rows(db_session: DbSession, layer: Layer, table: CoreTable, line: Line) -> Sequence[dict[str, Any]]:
    """Return the rows of a line; from a table that layers share, only the layer's rows.

    The columns of the line's key, and columns of bytes, such as hashes, are left out. A table's `info["exported"]` is
    the SQL condition of the rows that are part of the state, if not all are.
    """
    columns = [
        column
        for column in table.columns
        if column.name not in _OF_THE_LINE and not isinstance(column.type, LargeBinary)
    ]
    key = table.c.chat_key if "chat_key" in table.c else table.c.owner_key
    query = select(*columns).where(key == line[0], table.c.line_id == line[1]).order_by(*table.primary_key)
    if "exported" in table.info:
        query = query.where(text(table.info["exported"]))
    if "layer" in table.c:
        query = query.where(table.c.layer.in_([layer.name, *(spec.name for spec in layer.segments)]))
    return [dict(row) for row in (await db_session.execute(query)).mappings()]
