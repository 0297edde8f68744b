"""The texts of all layers that search can find. Like contexts, search uses only texts that are valid on the line."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from app.kit.db import DbSession
from app.kit.planner import COMPUTED_ONCE
from app.layers.layer import Layer
from app.lines.line_copy import Line

Fading = Literal["archives", "ignored", "weighs"]
"""How the age of a text affects a search, if it is a text that fades. With `archives`, a text that has become too weak
is not found. With `ignored`, it is found, too. With `weighs`, a text is found while it is strong enough, and its
present strength is its importance."""


class Document(NamedTuple):
    """A text of a layer. A layer's query `documents` selects these columns, in this order.

    Attributes:
        source: Its source, as in the `sources` of a context: `memo:<id>`, `summary:3`.
        text: The text to search.
        first_seq: The first message that it is about; 0 for a text about no message of the line.
        last_seq: The last message that it is about, inclusive. For a text about no message, the message that it
            follows, or 0.
        category: Its category, if it has one.
        importance: From 0 to 1, if it has one.

    """

    source: str
    text: str
    first_seq: int
    last_seq: int
    category: str | None = None
    importance: float | None = None


COLUMNS = ", ".join(Document._fields)


async def list_documents(
    db_session: DbSession,
    layers: Sequence[Layer],
    line: Line,
    *,
    character: str | None = None,
    now: datetime | None = None,
) -> list[Document]:
    """Return the texts of a line in the order of `layers`, then by their messages.

    The texts are those that a context for the prompt of `character` may use; None if it is not known. `now` is the
    service's time, by default that of the database.
    """
    documents = write_documents(layers)
    if not documents:
        return []
    rows = await db_session.raw.fetch(
        f"""
        SELECT {COLUMNS} FROM (
            SELECT d.* FROM chats c CROSS JOIN (
                SELECT $3::text AS character, coalesce($4::timestamptz, now()) AS now, NULL::int AS before_seq,
                    'archives' AS fading {COMPUTED_ONCE}
            ) AS q CROSS JOIN LATERAL ({documents}) AS d (place, {COLUMNS})
            WHERE c.chat_key = $1 AND c.line_id = $2) AS found
        ORDER BY place, first_seq, last_seq, source""",  # noqa: S608 - of constants
        *line,
        character,
        now,
    )
    return [Document(*row) for row in rows]


def write_documents(layers: Sequence[Layer], condition: Callable[[str], str] | None = None) -> str:
    """Return the query of the texts of all layers, or "" if no layer has any.

    It refers to the line's row `c` in `chats`, and to a row `q` with the columns `character`, `now`, `before_seq` and
    `fading` (`Fading`).
    Its columns are the layer's index in `layers` and the fields of `Document`.

    Args:
        layers: The layers.
        condition: Returns the condition for the texts of a layer, given its kinds as SQL (`'{memo}'::text[]`). If it
            depends on parameters only, PostgreSQL does not run the query of a layer whose condition is false.

    """
    return " UNION ALL ".join(
        f"SELECT {place} AS place, d.* FROM ({layer.documents}) AS d ({COLUMNS})"  # noqa: S608 - of constants
        f"{f' WHERE {condition(_write_kinds(layer))}' if condition else ''}"
        for place, layer in enumerate(layers)
        if layer.documents is not None
    )


def _write_kinds(layer: Layer) -> str:
    return f"'{{{','.join(layer.document_kinds)}}}'::text[]"
