"""Reads which statements hold, in one scope or for a line of a chat, which sees several scopes.

A statement is a fact, a memory or an operation on a block. Messages and tool calls teach statements; `known.py`
explains when a statement is live.
A line sees these scopes, the nearest first: its chat, its user with one character, its user, the tenant. For each key,
the newest live statement of the nearest scope holds (`known.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.chats.characters import Characters, accepts, find_meant, word_unknown
from app.chats.chat_lock import ChatRef
from app.chats.service import get_line
from app.kit.db import DbSession
from app.kit.errors import Invalid
from app.knowledge import message_queries, queries
from app.knowledge.known import Known, Rating, choose_deciding, choose_nearest
from app.knowledge.scopes import ScopeKey


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """Where statements are read: in one scope, or on a line of a chat, which sees several.

    Attributes:
        scope: The scope; that of the chat itself if a line is read.
        line: The chat's key and the line's id; None for a scope that is not read from a chat.
        character: The character whose statements count, if known.
        only_chat: Whether the line is read for a caller who sees only the scope of the chat itself.

    """

    scope: ScopeKey
    line: tuple[UUID, UUID] | None = None
    character: str | None = None
    only_chat: bool = False

    @classmethod
    def of_scope(cls, scope: ScopeKey) -> "Viewpoint":
        """Return the view of one scope."""
        return cls(scope, character=scope.character or None)


class Value(NamedTuple):
    """A value that a key has or had, and when the next one of its scope replaced it."""

    known: Known
    held_until: datetime | None


async def view_chat(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None = None, character: str | None = None
) -> Viewpoint:
    """Return the view of a line, the current one by default. Raises ChatNotFound, LineNotFound, Invalid.

    `character` is the character whose own statements (those of the user with this character) the view includes; by
    default, the only character of the chat.
    """
    chat = await get_line(db_session, ref, line)
    scope = ScopeKey.of_chat(ref.tenant, ref.key)
    return Viewpoint(scope, (ref.key, chat.line_id), choose_character(chat.characters, character), ref.only_chat)


def choose_character(characters: Characters, named: str | None) -> str | None:
    """Return the character that a request means, or None. Raises Invalid for a character that the chat lacks."""
    if named is not None and not accepts(characters, named):
        message = word_unknown(characters)
        raise Invalid(f"character: {message}", errors=[{"loc": ["query", "character"], "msg": message}])
    return find_meant(characters, named)


async def list_held(db_session: DbSession, view: Viewpoint, kind: str) -> Mapping[str, Known]:
    """Return the statement that holds for each key of a kind."""
    if view.line is None:
        known = await queries.list_newest(db_session, view.scope, kind)
    else:
        known = await queries.list_newest_of_chat(db_session, view.line, kind, only_chat=view.only_chat)
    return choose_nearest(known, view.character)


async def list_newest(
    db_session: DbSession, line: tuple[UUID, UUID], kind: str, *, only_chat: bool = False
) -> list[Known]:
    """Return the newest live statement of each key in each scope that a line sees, also those that do not hold.

    If a character was renamed, its statements under all of its names are compared, and only the newest one of each key
    is returned.
    """
    known = await queries.list_newest_of_chat(db_session, line, kind, only_chat=only_chat)
    known.sort(key=lambda one: (one.learnt_us, one.statement_id))
    return list({(one.rank, one.character, one.key): one for one in known}.values())


async def list_log(db_session: DbSession, view: Viewpoint, kind: str, *, with_open: bool = False) -> list[Known]:
    """Return the live operations of each key of a kind in each scope of the view, in no order.

    In each scope, the operations of a key before its newest live `replace` are left out. With `with_open`, operations
    of tool calls whose replies are still to come on the line that is read are included.
    """
    if view.line is None:
        return await queries.list_log(db_session, view.scope, kind)
    return await queries.list_log_of_chat(db_session, view.line, kind, with_open=with_open, only_chat=view.only_chat)


async def list_log_of_line(
    db_session: DbSession, line: tuple[UUID, UUID], kind: str, *, only_chat: bool = False
) -> list[Known]:
    """Return what `list_log` returns for a line. It needs no `Viewpoint`, so the chat need not be read first."""
    return await queries.list_log_of_chat(db_session, line, kind, with_open=False, only_chat=only_chat)


async def find_held(db_session: DbSession, view: Viewpoint, kind: str, key: str) -> Known | None:
    """Return the statement that holds for a key, or None."""
    return choose_nearest(await list_live(db_session, view, kind, key), view.character).get(key)


async def find_deciding(
    db_session: DbSession, view: Viewpoint, kind: str, key: str, *, with_call: UUID | None = None
) -> Known | None:
    """Return the newest live statement of a key in the nearest scope that has one, even if it takes the value away.

    `with_call` is as in `list_live`.
    """
    live = await list_live(db_session, view, kind, key, with_call=with_call)
    return choose_deciding(live, view.character).get(key)


async def is_newest(db_session: DbSession, scope: ScopeKey, kind: str, known: Known) -> bool:
    """Return whether a scope has no newer statement about the key, not even one that is not live.

    A newer one that is not live would hold again if the reply or the messages that taught it were restored.
    """
    newest_id = await queries.find_newest_id(db_session, scope, kind, known.key)
    return newest_id is not None and newest_id == known.statement_id


async def list_values(
    db_session: DbSession, view: Viewpoint, kind: str, key: str, *, of_all: bool = False
) -> list[Value]:
    """Return the values that a key has and had in each scope of the view, newest first.

    Values that are not live, because the replies or messages that taught them were taken back, are left out. So are
    values about characters other than that of the view, except with `of_all`.
    """
    values, next_at = [], dict[tuple[int, str | None], datetime]()
    for one in await list_live(db_session, view, kind, key):
        if not of_all and one.character not in (None, view.character):
            continue
        values.append(Value(one, next_at.get((one.rank, one.character))))
        next_at[one.rank, one.character] = one.learnt_at
    return values


async def list_sources(db_session: DbSession, view: Viewpoint, statements: Sequence[Known]) -> dict[UUID, list[str]]:
    """Return the sources of each statement, by its id: messages (`message:<id>`) of the line that is read."""
    return await list_sources_of(db_session, view, [one.statement_id for one in statements])


async def list_sources_of(
    db_session: DbSession, view: Viewpoint, statement_ids: Sequence[UUID]
) -> dict[UUID, list[str]]:
    """Return what `list_sources` returns, given the ids of the statements."""
    if view.line is None or not statement_ids:
        return {}
    return await list_sources_on_line(db_session, view.line, statement_ids)


async def list_sources_on_line(
    db_session: DbSession, line: tuple[UUID, UUID], statement_ids: Sequence[UUID]
) -> dict[UUID, list[str]]:
    """Return the messages of a line (its chat's key and its id) that taught statements, by the statement's id."""
    found = await message_queries.list_messages(db_session, line, statement_ids)
    return {statement_id: [f"message:{one}" for one in ids] for statement_id, ids in found.items()}


async def list_ratings(db_session: DbSession, view: Viewpoint, statements: Sequence[Known]) -> dict[UUID, Rating]:
    """Return the category, importance and tags of statements of the view, by the statement's id.

    A statement that was deleted since it was read is missing.
    """
    ids = [one.statement_id for one in statements]
    if view.line is None:
        return await queries.list_ratings(db_session, view.scope, ids) if ids else {}
    return await list_ratings_on_line(db_session, view.line, statements, only_chat=view.only_chat)


async def list_ratings_on_line(
    db_session: DbSession, line: tuple[UUID, UUID], statements: Sequence[Known], *, only_chat: bool = False
) -> dict[UUID, Rating]:
    """Return what `list_ratings` returns for a line (its chat's key and its id)."""
    ids = [one.statement_id for one in statements]
    return await queries.list_ratings_of_chat(db_session, line, ids, only_chat=only_chat) if ids else {}


async def list_positions(
    db_session: DbSession, view: Viewpoint, statement_ids: Sequence[UUID]
) -> dict[UUID, tuple[UUID, UUID, int]]:
    """Return a position at which each statement was taught and is live: a chat's key, its line, and a seq.

    If the line that is read taught the statement, the position is the last one on this line. Otherwise it is the one
    with the highest seq on the current lines of the chats that share the scope. A statement that only a person set has
    no position.
    """
    return await queries.list_positions(db_session, view.line, statement_ids) if statement_ids else {}


async def list_live(
    db_session: DbSession, view: Viewpoint, kind: str, key: str, *, with_call: UUID | None = None
) -> list[Known]:
    """Return the live statements of a key in each scope of the view, newest first.

    `with_call` is the id of the binding of a tool call on the line that is read. With it, what this call wrote counts
    as live, even if a person has hidden the reply. So does what those calls wrote whose replies are still to come on
    this line.
    """
    if view.line is None:
        return await queries.list_history(db_session, view.scope, kind, key)
    return await queries.list_history_of_chat(
        db_session, view.line, kind, key, only_chat=view.only_chat, with_call=with_call
    )
