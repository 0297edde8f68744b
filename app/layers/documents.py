"""The texts of all layers that search can find. Like contexts, search uses only texts that are valid on the line."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from app.kit.db import DbSession
from app.kit.planner import COMPUTED_ONCE
from app.layers.layer import Layer
from app.lines.line_copy import Line

Fading = Literal["archives", "ignored", "weighs"]
"""How the age of a text affects a search, if it is a text that fades. With `archives`, a text that has become too weak
is not found. With `ignored`, it is found, too. With `weighs`, a text is found while it is strong enough, and the column
`importance` has its present strength instead of its importance."""


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


class ScopeDocument(NamedTuple):
    """A text that is known in a scope above a chat. A layer's query `scope_documents` selects these columns.

    The query refers to a row `scope` with the columns `owner_key`, `line_id`, `rank` and `character` of the scope
    (`app.knowledge.liveness.OWNERS_OF_CHAT`), and `chat_keys`, the keys of the searched chats that see the scope.

    Attributes:
        source: Its source, as that of a `Document`.
        text: The text to search.
        category: Its category, if it has one.
        importance: From 0 to 1, if it has one.
        kind: The kind of its statement.
        key: The key of its statement. A chat does not see the text if a nearer scope has a statement with this key.
        statement_id: Its statement.
        learnt_us: When the statement was learnt, in microseconds since 1970.
        hash: The hash of the text. A chat that has forgotten this hash (`Statement.forgotten`) does not see the text.
            None for a text that a chat can hide only with a statement of the same key.

    """

    source: str
    text: str
    category: str | None
    importance: float | None
    kind: str
    key: str
    statement_id: UUID
    learnt_us: int
    hash: bytes | None


SCOPE_COLUMNS = ", ".join(ScopeDocument._fields)


class SharedDocument(NamedTuple):
    """A text of another chat of the user. A layer's query `shared_documents` selects these columns.

    Attributes:
        chat_key: The key of the chat that has the text. The vector of the text is looked up there, so no vector of it
            remains if that chat is erased.
        chat_id: The id of that chat.
        source: Its source, as that of a `Document`; no other text of the query has it.
        text: The text to search.
        category: What a model reads before the text in the results of recall and of `memory_search`. It says that the
            text is of another chat.

    """

    chat_key: UUID
    chat_id: str
    source: str
    text: str
    category: str


SHARED_COLUMNS = ", ".join(SharedDocument._fields)


async def list_documents(
    db_session: DbSession,
    layers: Sequence[Layer],
    line: Line,
    *,
    character: str | None = None,
    now: datetime | None = None,
) -> list[Document]:
    """Return the texts of a line in the order of `layers`, then by their messages.

    The texts are those that a context for the prompt of `character` may use. `character` is None if it is not known.
    `now` is the time at which the age of a text is measured, by default the database's time.
    """
    documents = write_documents(layers)
    if not documents:
        return []
    rows = await db_session.raw.fetch(
        f"""
        SELECT {COLUMNS} FROM (
            SELECT d.* FROM chats c CROSS JOIN (
                SELECT $3::text AS character, $3::text AS named, coalesce($4::timestamptz, now()) AS now,
                    NULL::int AS before_seq, 'archives' AS fading {COMPUTED_ONCE}
            ) AS q CROSS JOIN LATERAL ({documents}) AS d (layer_index, {COLUMNS})
            WHERE c.chat_key = $1 AND c.line_id = $2) AS found
        ORDER BY layer_index, first_seq, last_seq, source""",  # noqa: S608 - of constants
        *line,
        character,
        now,
    )
    return [Document(*row) for row in rows]


def write_documents(layers: Sequence[Layer], condition: Callable[[str], str] | None = None) -> str:
    """Return the query of the texts of all layers, or "" if no layer has any.

    It refers to the line's row `c` in `chats`, and to a row `q` with the columns `character`, `named`, `now`,
    `before_seq` and `fading` (`Fading`).
    Its columns are the layer's index in `layers` and the fields of `Document`.

    Args:
        layers: The layers.
        condition: Returns the condition for the texts of a layer, given its kinds as SQL (`'{memo}'::text[]`). If it
            depends on parameters only, PostgreSQL does not run the query of a layer whose condition is false.

    """
    return " UNION ALL ".join(
        f"SELECT {index} AS layer_index, d.* FROM ({layer.documents}) AS d ({COLUMNS})"  # noqa: S608 - of constants
        f"{f' WHERE {condition(_write_kinds(layer))}' if condition else ''}"
        for index, layer in enumerate(layers)
        if layer.documents is not None
    )


def write_scope_documents(layers: Sequence[Layer], condition: Callable[[str], str]) -> str:
    """Return the query of the texts of all layers in one scope above a chat, or "" if no layer has any.

    Its columns are the fields of `ScopeDocument`, which also defines the row `scope`. `condition` is that of
    `write_documents`.
    """
    return " UNION ALL ".join(
        f"SELECT d.* FROM ({layer.scope_documents}) AS d ({SCOPE_COLUMNS}) WHERE {condition(_write_kinds(layer))}"  # noqa: S608 - of constants
        for layer in layers
        if layer.scope_documents is not None
    )


def write_shared_documents(layers: Sequence[Layer], condition: Callable[[str], str]) -> str:
    """Return the query of the texts of other chats that a chat sees, or "" if no layer has any.

    Its columns are the fields of `SharedDocument`. The rows `c` and `q`, and `condition`, are those of
    `write_documents`.
    """
    return " UNION ALL ".join(
        f"SELECT d.* FROM ({layer.shared_documents}) AS d ({SHARED_COLUMNS}) WHERE {condition(_write_kinds(layer))}"  # noqa: S608 - of constants
        for layer in layers
        if layer.shared_documents is not None
    )


def _write_kinds(layer: Layer) -> str:
    return f"'{{{','.join(layer.document_kinds)}}}'::text[]"
