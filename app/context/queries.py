"""The one SQL statement of a context: the line's row, its history, its pinned messages and the layers' subqueries."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeAlias
from uuid import UUID

import orjson

from app.chats.characters import Characters, find_meant
from app.chats.covering_layer import edges_in_effect
from app.chats.prompt_cache import CURSOR as PAUSES
from app.chats.revision import LINE
from app.chats.settings import ChatSettings, effective_json
from app.context.calls import drop_unanswered_calls
from app.context.formats import is_said
from app.context.in_use import in_use
from app.context.segments import UNREAD, HistoryMessage
from app.kit.db import Connection
from app.kit.ids import tenant_key
from app.kit.owners import NO_LINE
from app.kit.planner import COMPUTED_ONCE
from app.layers.contribution import Contributed, View, placement_of
from app.layers.layer import Layer
from app.layers.recent_chats import MOST_CHANGES, Remembered
from app.messages.rules import IS_HIDDEN_BY_SCENES, IS_NOT_DELETED, qualify

_defaults = ChatSettings()

Row: TypeAlias = Mapping[str, Any]
"""A row of the statement."""

# The fields of a `HistoryMessage`, in their order; the newest message comes first.
_ENTRIES = """
    SELECT json_agg(json_build_array(m.seq, m.message_id, m.role, m.name, {content}, m.tokens, m.sent_at,
        {calls}, m.tool_call_id) ORDER BY m.seq DESC)
    FROM {messages} m"""

_OF_LINE = f"""
    WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id AND {qualify(IS_NOT_DELETED, "m")} AND m.kind IS NULL
        AND (b.seq IS NULL OR m.seq < b.seq)"""

# The token limit of a context, divided by the token factor, because the column `tokens` does not contain the factor.
_BUDGET = f"""
    SELECT coalesce($3::int, (c.settings ->> 'context_tokens')::int, {_defaults.context_tokens})
        / coalesce((c.settings ->> 'token_factor')::float8, {_defaults.token_factor}) + 1 AS budget {COMPUTED_ONCE}"""

# The history of a context consists of the newest messages that fit. Each costs at least its `tokens`, unless the format
# shortens it (then `service.py` reads everything). So a message cannot be in this history if the newer ones alone
# exceed the budget. The text of such a message, which may be long and stored outside of the table's row (TOAST), is
# replaced by UNREAD. Blank texts are always read, also those of messages that only make tool calls (their `tokens` are
# 0). UNREAD is not blank: if it replaced a blank text, the message would count as one that has text.
_HISTORY = _ENTRIES.format(
    calls="m.tool_calls",
    content="CASE WHEN m.up_to_it - m.tokens <= o.budget OR m.blank OR m.tokens = 0 THEN m.content END",
    messages=f"""(
        SELECT m.seq, m.message_id, m.role, m.name, m.content, m.tokens, m.sent_at, m.tool_calls, m.tool_call_id,
            m.blank, sum(CASE WHEN m.blank THEN 0 ELSE m.tokens END) OVER (
                ORDER BY m.seq DESC ROWS UNBOUNDED PRECEDING) AS up_to_it
        FROM messages m {_OF_LINE} AND m.seq >= c.anchor_seq AND m.hidden_by IS NULL)""",  # noqa: S608
)

EXACT_PINNED_TOKENS = 100_000
"""The newest pinned messages, up to this many tokens together, are read even if they do not fit the limit.

So the error that `max_tokens` is too small says exactly how many tokens are needed.
"""

# Messages that scenes hide are never in the history, but can still be pinned. `m.pinned` is written as in the partial
# index, so that a chat without pinned messages costs only one lookup in it. Each pinned message costs at least its
# `tokens`, so texts beyond the budget are not read, as in the history. A pinned message is sent without its tool calls;
# if it has no text, it is not sent.
_PINNED = _ENTRIES.format(
    calls="NULL::jsonb",
    content=f"""CASE WHEN m.up_to_it - m.tokens <= greatest(o.budget, {EXACT_PINNED_TOKENS}) OR m.tokens = 0
        THEN m.content END""",
    messages=f"""(
        SELECT m.seq, m.message_id, m.role, m.name, m.content, m.tokens, m.sent_at, m.tool_call_id,
            sum(m.tokens) OVER (ORDER BY m.seq DESC ROWS UNBOUNDED PRECEDING) AS up_to_it
        FROM messages m {_OF_LINE} AND m.pinned AND NOT m.blank
            AND ({qualify(IS_HIDDEN_BY_SCENES, "m")} OR (m.hidden_by IS NULL AND m.seq < c.anchor_seq)))""",  # noqa: S608
)

_CONTEXT = """
    SELECT c.line_id, c.user_id, c.revision, c.changed::text AS changed, ({of_user}) AS of_user,
        ({of_tenant}) AS of_tenant, c.head_seq, c.anchor_seq, c.last_cut::text AS last_cut,
        c.characters::text AS characters, c.user_name, c.user_persona, c.system_prompt, c.settings::text AS settings,
        c.time_zone, c.language, c.context_cache::text AS context_cache,
        (c.cursors -> '{pauses}' -> 'seen_s')::text AS pauses, b.seq AS before_seq,
        ({history})::text AS history, ({pinned})::text AS pinned{conditions}{queries}
    FROM chats c {before} CROSS JOIN LATERAL ({budget}) o
    WHERE c.chat_key = $1 AND {which}"""

# Without an outer join, the planner knows that `b.seq` is NULL, and removes the parts of the statement that need its
# value, even whole subqueries.
_NO_MESSAGE = "CROSS JOIN (SELECT NULL::int AS seq) b"

_MESSAGE = f"""LEFT JOIN LATERAL (
    SELECT m.seq FROM messages m
    WHERE m.chat_key = c.chat_key AND m.line_id = c.line_id AND m.message_id = $4 AND {qualify(IS_NOT_DELETED, "m")}) b
    ON true"""  # noqa: S608

_SCOPE = f"SELECT s.revision FROM scopes s WHERE s.owner_key = {{key}} AND s.line_id = '{NO_LINE}'"  # noqa: S608


@lru_cache(maxsize=16)
def write_statement(
    queries: tuple[tuple[str, str], ...],
    *,
    of_current: bool,
    before: bool = False,
    conditions: tuple[tuple[str, str], ...] = (),
) -> str:
    """Return the statement of a context.

    Its arguments are the key of the chat, the key of the tenant, and the context's `max_tokens`, or None for the chat's
    `context_tokens`. After them come the id of the message that the context is for, if `before` is true, and the line's
    id, if `of_current` is false.

    Args:
        queries: (layer name, scalar subquery on `c` and `b`); the result of each is the column `q_<name>`.
        of_current: Whether the line is the chat's current one.
        before: Whether only messages before a given message count. If so, `b.seq` is the seq of the given message; if
            not, `b.seq` is NULL.
        conditions: (name of a column, condition on `c`); the column has the result of the condition.

    """
    return _CONTEXT.format(
        pauses=PAUSES,
        history=_HISTORY,
        pinned=_PINNED,
        conditions="".join(f", ({condition}) AS {name}" for name, condition in conditions),
        queries="".join(f", ({query}) AS q_{name}" for name, query in queries),
        budget=_BUDGET,
        before=_MESSAGE if before else _NO_MESSAGE,
        which="c.line_status = 'current'" if of_current else f"c.line_id = ${5 if before else 4}",
        of_user=_SCOPE.format(key="c.user_key"),
        of_tenant=_SCOPE.format(key="$2"),
    )


async def find_context(
    connection: Connection,
    tenant: str,
    chat_key: UUID,
    line_id: UUID | None,
    queries: Mapping[str, str],
    before: str | None = None,
    max_tokens: int | None = None,
) -> Row | None:
    """Return the row that a context and its entity tag are made from, or None if there is no such chat or line.

    With the id of a message as `before`, only earlier messages count. The column `before_seq` is then the seq of that
    message, or None if the line does not have it. The texts of messages that cannot fit `max_tokens` are not read.
    """
    statement = write_statement(tuple(queries.items()), of_current=line_id is None, before=before is not None)
    optional = [one for one in (before, line_id) if one is not None]
    row = await connection.fetchrow(statement, chat_key, tenant_key(tenant), max_tokens, *optional)
    return dict(row) if row is not None else None


async def find_current(
    connection: Connection, tenant: str, chat_key: UUID, max_tokens: int | None = None
) -> Row | None:
    """Return what `find_context` returns for a chat's current line, with the queries of the layers in use.

    PostgreSQL prepares a subquery for each execution even if a condition then skips it. If a chat needs none of the
    subqueries, this preparation is most of their cost. So the first statement leaves out the subqueries that have a
    condition, and returns the values of the conditions. If a condition is true, the full statement follows: the one
    with all subqueries. While its results are remembered (`layers/recent_chats.py`), the next context of the chat
    begins with a smaller statement again, whose row has the revisions that show whether the results are outdated. If
    the results are no longer remembered, or were outdated in each of the last MOST_CHANGES contexts, the next context
    begins with the full statement. So even a chat that learns something in every turn needs only one statement a
    context.
    """
    used = in_use()
    current, least = used.current_queries or {}, used.least_queries or {}
    remembered = used.recent.find(chat_key)
    if remembered is None or remembered.changes >= MOST_CHANGES:
        queries = current if chat_key in used.recent else least
    else:
        queries = (used.other_queries or {}) if remembered.needs_others else least
    row = await _fetch_current(connection, tenant, chat_key, max_tokens, queries)
    is_enough = row is None or queries is current or _is_enough(row, remembered, reads_others=queries is not least)
    if not is_enough:
        queries = current
        row = await _fetch_current(connection, tenant, chat_key, max_tokens, queries)
    if row is None:
        used.recent.note(chat_key, None)
        return None
    if queries is current:
        found = {name: row[f"q_{name}"] for name in used.remembered}
    elif remembered is not None and row["needs_remembered"]:
        found = dict(remembered.found)
    else:
        found = dict.fromkeys(used.remembered)
    tag = _tag_of(row)
    changes = remembered.changes + 1 if remembered is not None and remembered.tag != tag else 0
    now = Remembered(tag, found, bool(row["needs_others"]), min(changes, MOST_CHANGES))
    if now != remembered:
        used.recent.note(chat_key, now if row["needs_remembered"] or row["needs_others"] else None)
    return row | {f"q_{name}": one for name, one in found.items()}


async def _fetch_current(
    connection: Connection, tenant: str, chat_key: UUID, max_tokens: int | None, queries: Mapping[str, str]
) -> dict[str, Any] | None:
    statement = write_statement(tuple(queries.items()), of_current=True, conditions=in_use().conditions)
    row = await connection.fetchrow(statement, chat_key, tenant_key(tenant), max_tokens)
    return dict(row) if row is not None else None


def _is_enough(row: Row, remembered: Remembered | None, *, reads_others: bool) -> bool:
    """Return whether the row of a smaller statement is enough for a context.

    The row lacks the results that the process can remember. There are also subqueries whose results are needed only
    under a condition and are never remembered; `reads_others` is whether the row has the results of these.
    """
    if row["needs_others"] and not reads_others:
        return False
    return not row["needs_remembered"] or (remembered is not None and remembered.tag == _tag_of(row))


def _tag_of(row: Row) -> Hashable:
    """Return the revisions on which the remembered results depend."""
    return list_revisions(row, in_use().changes_with)


def list_revisions(row: Row, names: Iterable[str]) -> tuple[Hashable, ...]:
    """Return the line's id, the revisions of the last changes of `names`, and the revisions of the user and the tenant.

    The names are keys of the column `changed`: parts of a line, such as `messages`, and layers.

    While these values stay the same, data that depends only on these parts, the user and the tenant does not change.
    """
    changed = orjson.loads(row["changed"])
    numbers = [changed.get(name) or changed.get(LINE) for name in names]
    return row["line_id"], *numbers, row["of_user"], row["of_tenant"]


def read_messages(stored: str | None) -> Sequence[HistoryMessage]:
    """Return the messages in `stored`, a column of the statement; the column is None if there are no messages."""
    if stored is None:
        return ()
    entries = [HistoryMessage(*fields) for fields in reversed(orjson.loads(stored))]
    return [entry._replace(text=UNREAD) if entry.text is None else entry for entry in entries]


def read_history(stored: str | None) -> Sequence[HistoryMessage]:
    """Return the messages in `stored` like `read_messages`, but join the messages of each speaker that were not read.

    While a cut waits, a history can have thousands of messages that do not fit. None of them is sent, so they need not
    be rendered one by one. Messages before and after a tool call, its result or a blank message are not joined.
    """
    if stored is None:
        return ()
    entries: list[HistoryMessage] = []
    for is_unread, group in groupby(reversed(orjson.loads(stored)), key=_is_unread):
        rows = list(group)
        entries += _join(rows) if is_unread else [HistoryMessage(*fields) for fields in rows]
    return [entry._replace(text=UNREAD) if entry.text is None else entry for entry in entries]


def _is_unread(fields: Sequence[Any]) -> bool:
    _, _, role, _, text, _, _, calls, _ = fields
    return text is None and not calls and role != "tool"


def _join(rows: Sequence[Sequence[Any]]) -> Sequence[HistoryMessage]:
    """Return one message for each role and name in place of messages that were not read, oldest first.

    It has the seq of the newest of them.
    """
    of_speaker: dict[tuple[str, str | None], list[Sequence[Any]]] = {}
    for fields in rows:
        of_speaker.setdefault((fields[2], fields[3]), []).append(fields)
    joined = [
        HistoryMessage(*said[-1])._replace(
            tokens=sum(fields[5] for fields in said), joined=tuple(fields[0] for fields in said)
        )
        for said in of_speaker.values()
    ]
    return sorted(joined, key=lambda one: one.seq)


@dataclass(frozen=True, slots=True)
class Source:
    """The parsed row of the statement, with the layers' contributions.

    Attributes:
        row: The row.
        settings: The chat's settings, as they take effect.
        characters: The chat's characters.
        contributed: The contribution of each layer, by name.
        edge_kind: Which seqs are edges, that is, where the history may begin (`edges_in_effect`).
        edges: The edges that the layers contribute.
        history: The messages from the anchor on, oldest first, with blank ones, which are not sent. One message can
            represent several of the same speaker that were not read.
        history_messages: How many messages of `history` are not blank and so are sent, as in `Head.history_messages`.
        pinned: The pinned messages that are out of the history (`pinned.py`), without blank ones; none if the settings
            omit the segment `pinned`.

    """

    row: Row
    settings: ChatSettings
    characters: Characters
    contributed: Mapping[str, Contributed]
    edge_kind: str
    edges: Sequence[int]
    history: Sequence[HistoryMessage]
    history_messages: int
    pinned: Sequence[HistoryMessage]


def read_material(row: Row, layers: Sequence[Layer], character: str | None) -> Source:
    """Parse the row of the statement and collect the layers' contributions; `character` is the requested one."""
    settings = effective_json(row["settings"])
    characters = orjson.loads(row["characters"])
    cache = orjson.loads(row["context_cache"])
    chosen = find_meant(characters, character)
    edge_kind = edges_in_effect(settings, layers)
    history = drop_unanswered_calls(read_history(row["history"]))
    contributed = {}
    for layer in layers:
        queried = row[f"q_{layer.name}"] if layer.context_query else None
        contributed[layer.name] = layer.contribute(
            View(cache.get(layer.name, {}), queried, settings, chosen, row["before_seq"])
        )
    return Source(
        row=row,
        settings=settings,
        characters=characters,
        contributed=contributed,
        edge_kind=edge_kind,
        edges=[edge for one in layers if one.edges == edge_kind for edge in contributed[one.name].edges],
        history=history,
        history_messages=sum(len(entry.seqs) for entry in history if is_said(entry)),
        pinned=_read_pinned(row["pinned"]) if placement_of(settings.pinned) is not None else (),
    )


def _read_pinned(stored: str | None) -> Sequence[HistoryMessage]:
    return [one._replace(tool_calls=None) for one in read_messages(stored) if one.text.strip()]
