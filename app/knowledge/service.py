"""Writes statements, and updates their teachings when the lines that taught them change.

A statement is something that is known in a scope. A teaching is the row that says which message taught it
(`models.py`). `app/pipeline.py` calls the handlers at the end (`on_…`) when something happens to a line. Most of them
read nothing if the chat has taught nothing. The head of its line (`app/chats/head.py`) then has no cursor CURSOR.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from app.bindings import service as bindings
from app.bindings.events import BindingsChanged
from app.bindings.service import Made
from app.chats.events import ChatForked, CurrentLineReplaced, LineTruncated, MessagesChanged, MessagesMoved
from app.chats.head import Head
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.kit.owners import OwnerErased
from app.kit.scopes import lock_scope_of
from app.knowledge import message_queries, queries, rule_queries
from app.knowledge.cache import note_change
from app.knowledge.errors import TooManyKeys
from app.knowledge.models import Statement, Teaching
from app.knowledge.scopes import ScopeKey

CURSOR = "knowledge"
"""The name of the cursor, which the head has as soon as the chat has taught something.

It contains `by_messages` as soon as something was learnt from messages.
"""

MAX_KEYS = 1_000
"""The maximum number of keys of one kind that have a value in a scope, so that a context that reads them stays fast."""

MAX_STORED_KEYS = 4_000
"""The maximum number of keys of one kind in a scope that have or had a value. A context looks up each of them."""


class Said(NamedTuple):
    """What a statement says.

    Attributes:
        kind: The kind of the statement.
        key: Its key.
        content: The value; None to take the value away.
        tokens: The tokens of its line in a prompt.
        operation: For a block, what it does with the text of the block; None for facts and memories, whose statements
            are whole values.
        pattern: What `search_replace` looks for; None for the other operations.
        more: Values of further columns of `Statement`.

    """

    kind: str
    key: str
    content: str | None
    tokens: int
    operation: str | None = None
    pattern: str | None = None
    more: Mapping[str, Any] = MappingProxyType({})


async def lock_scope(db_session: DbSession, scope: ScopeKey) -> None:
    """Lock a wide scope for a change that depends on what holds in it. For a chat, its own lock is enough."""
    if scope.wide_key is not None:
        await lock_scope_of(db_session, scope.wide_key)


class Source(NamedTuple):
    """A message that something was learnt from, and the hash of the text that was read (`bindings.rule.hash_text`)."""

    message_id: str
    text_hash: bytes


async def set_by_person(
    db_session: DbSession,
    scope: ScopeKey,
    said: Said,
    *,
    edited: bool,
    now: datetime,
    bounded: bool = True,
    origin: str = "person",
) -> None:
    """Insert what a person sets. If the scope is a chat, the caller has locked it.

    `origin` is `extractive` if the service composed the text from a block's operations, to make room for the person's
    change. With `bounded`, raises TooManyKeys if the scope has the maximum number of keys.
    """
    if bounded:
        await _check_room(db_session, scope, said)
    await queries.insert_newest(db_session, _statement(scope, uuid7(), said, origin, now, is_set=True, edited=edited))
    _raise(db_session, scope.tenant, _wide(scope))


async def teach(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    made: Made,
    said: Said,
    *,
    layer: str,
    now: datetime,
    bounded: bool = True,
) -> None:
    """Insert a statement that a tool call teaches, bound to the reply that the call belongs to.

    `layer` is the layer of the tool. `head` is that of the chat's current line, locked. `made` is the binding of the
    call; the call must not be a retry. With `bounded`, raises TooManyKeys if the scope has the maximum number of keys.
    """
    if bounded:
        await _check_room(db_session, scope, said)
    await queries.insert_newest(db_session, _statement(scope, made.binding_id, said, "tool", now))
    teaching = Teaching(
        chat_key=head.chat_key,
        line_id=head.line_id,
        teaching_id=made.binding_id,
        layer=layer,
        statement_id=made.binding_id,
        wide_key=scope.wide_key,
        first_seq=made.at_seq,
        hidden=not made.matches,
    )
    await queries.insert_teaching(db_session, teaching)
    head.cursors.setdefault(CURSOR, {})
    _raise(db_session, head.tenant, _wide(scope))


async def teach_by_messages(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    statement_id: UUID,
    sources: Sequence[Source],
    *,
    layer: str,
    now: datetime,
) -> int | None:
    """Store that messages taught a statement that exists already, and return how many had not taught it before.

    Return None if the statement was deleted meanwhile, because another chat of the scope deleted its last teaching.

    A message whose text has changed since it was read teaches nothing until it has that text again. A message that
    `head`'s line lacks is left out. `head` is that of the chat's current line, locked. `now` is the service's time. A
    message with a later time counts as sent at `now`.
    """
    if not await message_queries.lock_statement(db_session, scope, statement_id):
        return None
    return await _teach_by_messages(db_session, head, scope, statement_id, sources, layer, now)


async def _teach_by_messages(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    statement_id: UUID,
    sources: Sequence[Source],
    layer: str,
    now: datetime,
) -> int:
    rows = [(uuid7(), one.message_id, one.text_hash) for one in dict.fromkeys(sources)]
    hidden = await message_queries.teach_by_messages(
        db_session, head.line, layer, statement_id, scope.wide_key, rows, now
    )
    if hidden:
        head.cursors[CURSOR] = {"by_messages": True}
        _raise(db_session, head.tenant, _wide(scope))
    return len(hidden)


async def learn_by_messages(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    said: Said,
    sources: Sequence[Source],
    *,
    statement_id: UUID,
    layer: str,
    origin: str,
    at: datetime,
    now: datetime,
    bounded: bool = True,
) -> bool:
    """Insert a statement that messages taught, dated `at`; return False if the line has none of these messages.

    `now` is the service's time, as in `teach_by_messages`. `head` is that of the chat's current line, locked. With
    `bounded`, raises TooManyKeys if the scope has the maximum number of keys.
    """
    if bounded:
        await _check_room(db_session, scope, said)
    if not await _teach_by_messages(db_session, head, scope, statement_id, sources, layer, now):
        return False
    await queries.insert_statement(db_session, _statement(scope, statement_id, said, origin, at))
    return True


async def retract_learnt_by_rule(
    db_session: DbSession, head: Head, first_seq: int, last_seq: int, layers: Sequence[str]
) -> set[str]:
    """Delete what rules have learnt from a range of messages (both inclusive), unless a person has changed it.

    Only what was learnt for `layers` is deleted. `head` is that of the chat's current line, locked. The caller has also
    locked the users and tenants that `rule_queries.list_wide_keys` returns. To lock those that the setting
    `learn_scope` names is not enough: the setting may have been changed since something was learnt. Returns the layers
    in which something was deleted.
    """
    wide, changed = await rule_queries.retract_learnt_by_rule(db_session, head.line, first_seq, last_seq, layers)
    _raise(db_session, head.tenant, wide)
    return changed


# --- what follows from changes of a line ---


async def on_bindings(db_session: DbSession, event: BindingsChanged) -> None:
    """Show, hide or delete what tools of one layer taught, when replies arrive or change, or calls are dropped."""
    head, line = event.head, event.head.line
    wide: list[UUID] = []
    if event.dropped:
        wide += await queries.drop(db_session, line, [one.binding_id for one in event.dropped])
    if event.bound:
        rows = [(one.binding_id, one.at_seq, not one.matches) for one in event.bound]
        wide += await queries.bind(db_session, line, rows)
    if event.toggled:
        wide += await queries.hide(db_session, line, [(one.binding_id, not one.matches) for one in event.toggled])
    _raise(db_session, head.tenant, wide)


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Hide or show what was learnt from the changed messages, and date it again if their times changed."""
    head = event.head
    if head.cursors.get(CURSOR, {}).get("by_messages"):
        seqs, redated = [after.seq for _, after in event.pairs], event.redated
        wide = await message_queries.recheck(db_session, head.line, seqs, redated=redated, now=event.now)
        _raise(db_session, head.tenant, wide)


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Delete what was taught by messages that were cut off from the end of the line."""
    head = event.head
    if CURSOR in head.cursors:
        _raise(db_session, head.tenant, await queries.truncate(db_session, head.line, event.from_seq))


async def on_move(db_session: DbSession, event: MessagesMoved) -> None:
    """Copy to the new line what the moved messages taught. The bindings of the calls are copied already."""
    head = event.head
    if CURSOR not in head.cursors:
        return
    moved = await queries.list_after(db_session, (head.chat_key, event.from_line_id), event.kept_seq)
    positions = await bindings.list_positions(db_session, head.line, moved)
    rows = [(binding_id, position.at_seq, not position.matches) for binding_id, position in positions.items()]
    await queries.move(db_session, head.line, event.from_line_id, rows)
    if head.cursors[CURSOR].get("by_messages"):
        await message_queries.move_by_messages(db_session, head.line, event.from_line_id, event.kept_seq, event.now)


async def on_fork(db_session: DbSession, event: ChatForked) -> None:
    """Copy the statements of the chat itself to its fork."""
    await queries.copy_of_chat(db_session, event.chat_key, event.target)


async def on_line_replaced(db_session: DbSession, event: CurrentLineReplaced) -> None:
    """Raise the revisions of the users and tenants that any line of the chat taught something about."""
    _raise(db_session, event.tenant, await queries.list_wide_keys(db_session, event.chat_key))


async def on_owner_erased(db_session: DbSession, event: OwnerErased) -> None:
    """Raise the revisions of the users and tenants that an erased chat taught something about."""
    _raise(db_session, event.tenant, event.wide_keys)


def raise_revision(db_session: DbSession, scope: ScopeKey) -> None:
    """Raise the revision of a scope that is wider than a chat, because something that is known there changes."""
    _raise(db_session, scope.tenant, _wide(scope))


def _raise(db_session: DbSession, tenant: str, wide_keys: Iterable[UUID]) -> None:
    """Raise the revisions of users and the tenant, given by their keys, because their live statements have changed."""
    for key in set(wide_keys):
        note_change(db_session, tenant, key)


def _wide(scope: ScopeKey) -> list[UUID]:
    return [scope.wide_key] if scope.wide_key else []


async def _check_room(db_session: DbSession, scope: ScopeKey, said: Said) -> None:
    """Raise TooManyKeys if the scope has no room for this statement.

    A new key needs room among the MAX_STORED_KEYS keys that have or had a value, even if the statement is a deletion. A
    value for a key that has none needs room among the MAX_KEYS keys that have a value. Other statements need no room.
    Keys are counted only up to these maxima.
    """
    kind, key = said.kind, said.key
    is_new = not await queries.has_key(db_session, scope, kind, key)
    if not is_new and (said.content is None or await queries.has_value(db_session, scope, kind, key)):
        return
    stored = await queries.count_keys(db_session, scope, kind, MAX_STORED_KEYS)
    if stored < MAX_KEYS:
        return
    if is_new and stored >= MAX_STORED_KEYS:
        raise TooManyKeys(f"The scope {scope.name!r} has or had {MAX_STORED_KEYS:,} keys already, the maximum.")
    if said.content is not None and await queries.count_held(db_session, scope, kind, MAX_KEYS) >= MAX_KEYS:
        raise TooManyKeys(f"The scope {scope.name!r} has {MAX_KEYS:,} keys already, the maximum.")


def _statement(
    scope: ScopeKey,
    statement_id: UUID,
    said: Said,
    origin: str,
    now: datetime,
    *,
    is_set: bool = False,
    edited: bool = False,
) -> Statement:
    return Statement(
        owner_key=scope.owner_key,
        line_id=scope.line_id,
        statement_id=statement_id,
        kind=said.kind,
        character=scope.character,
        key=said.key,
        content=said.content,
        tokens=said.tokens,
        origin=origin,
        is_set=is_set,
        edited=edited,
        learnt_at=now,
        operation=said.operation,
        pattern=said.pattern,
        **{"pinned": False, **said.more},
    )
