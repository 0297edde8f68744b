"""The texts of all layers that search can find: only texts that are valid on the line, as contexts contain them."""

from collections.abc import Sequence
from typing import NamedTuple

from app.kit.db import DbSession
from app.layers.layer import Layer
from app.lines.line_copy import Line


class Document(NamedTuple):
    """A text of a layer. A layer's query `documents` selects these four columns, in this order.

    Attributes:
        source: Its source, as in the `sources` of a context: `memo:<id>`, `summary:3`.
        text: The text to search.
        first_seq: The first message that it is about. For a text about no messages, the message that it follows, or 0.
        last_seq: The last message that it is about, inclusive.

    """

    source: str
    text: str
    first_seq: int
    last_seq: int


async def list_documents(db_session: DbSession, layers: Sequence[Layer], line: Line) -> list[Document]:
    """Return the texts of a line in the order of `layers`, then by their messages."""
    queries = [_select(place, layer.documents) for place, layer in enumerate(layers) if layer.documents is not None]
    if not queries:
        return []
    union = " UNION ALL ".join(queries)
    rows = await db_session.raw.fetch(f"{union} ORDER BY place, first_seq, last_seq, source", *line)
    return [Document(*list(row)[1:]) for row in rows]


def _select(place: int, documents: str) -> str:
    columns = "d (source, text, first_seq, last_seq)"
    rows = f"SELECT {place} AS place, d.* FROM chats c CROSS JOIN LATERAL ({documents}) AS {columns}"  # noqa: S608 - of constants
    return f"{rows} WHERE c.chat_key = $1 AND c.line_id = $2"
