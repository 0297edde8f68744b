"""Connects calls of tools with replies: when a tool is called, when messages are appended, changed, cut off or moved.

The rule is in `rule.py`. When a tool of a layer writes something, the layer calls `bind` and stores the content under
the binding's id. The event `BindingsChanged` reports the outcome. A binding is open until the reply is stored. The
head's cursors contain the number of open bindings, so an append to a line without open bindings needs no query here.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from app.bindings import queries, records
from app.bindings.events import BindingsChanged, Bound, Dropped, Toggled
from app.bindings.models import Binding
from app.bindings.queries import Named, Position
from app.bindings.rule import (
    Appended,
    LogMessage,
    Open,
    Placement,
    Target,
    choose_placement,
    find_turn_seq,
    is_discarded,
    is_reply,
    resolve,
    resolve_texts,
)
from app.chats.characters import accepts, word_unknown
from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import (
    CharacterRenamed,
    LineEvent,
    LineTruncated,
    MessagesAppended,
    MessagesChanged,
    MessagesMoved,
    TextsAdded,
)
from app.chats.head import Head
from app.chats.revision import record, record_nothing
from app.chats.service import get_line
from app.kit.db import DbSession, defer
from app.kit.errors import Invalid
from app.kit.ids import uuid7

CURSOR = "bindings"
"""The key of this package in `Head.cursors`. It is absent until a tool that writes is called on the line."""

RETRY_WINDOW_S = 600
"""The time within which a call with the same arguments, character and newest message counts as a retry."""


class Call(NamedTuple):
    """A call of a tool that writes.

    Attributes:
        layer: The layer that writes for the tool.
        tool: The tool's name.
        character: The character that calls it; empty if it has no name or is unknown.
        identity: The hash of its arguments.
        target: What the call says about its reply.

    """

    layer: str
    tool: str
    character: str
    identity: bytes
    target: Target


class Made(NamedTuple):
    """The binding of a call.

    Attributes:
        binding_id: Its id, which is also the id of what the layer writes.
        is_retry: Whether an earlier call made it. Then there is nothing to write.
        is_open: Whether its reply is not stored yet.
        at_seq: The reply's seq; if the binding is open, as in `Binding`.
        turn_seq: If the binding is open, a seq in the turn of the reply (`rule.find_turn_seq`); otherwise as `at_seq`.
        matches: Whether contexts may contain at once what the layer writes.
        sent_at: The time of the reply. If the reply is not stored yet, the time of the message whose next swipe the
            call awaits; if the call awaits a new message, the time of the newest message. None if there is no message,
            and for a retry.

    """

    binding_id: UUID
    is_retry: bool
    is_open: bool
    at_seq: int
    turn_seq: int
    matches: bool
    sent_at: datetime | None


async def bind(db_session: DbSession, head: Head, call: Call, *, now: datetime) -> Made:
    """Bind a call to its reply, or store that it is open. Raises Invalid for a target that cannot be a reply."""
    at = await _locate(db_session, head, call, now=now)
    made = at.find_retry()
    if made is not None:
        return made
    after = at.named.message if at.named else at.newest
    made = at.make(uuid7(), is_retry=False, sent_at=after.sent_at if after else None)
    await queries.insert_binding(db_session, head.line, _values(call, at.placement, made, at.newest, now))
    _note_open(head, _count_open(head) + made.is_open)
    return made


async def find_retry(db_session: DbSession, head: Head, call: Call, *, now: datetime) -> Made | None:
    """Return what `bind` would return if the call is a retry, otherwise None. Writes nothing. Raises Invalid."""
    return (await _locate(db_session, head, call, now=now)).find_retry()


class _Located(NamedTuple):
    """The placement of a call; if the call is a retry, `known` is the id of the earlier call's binding."""

    newest: LogMessage | None
    named: Named | None
    placement: Placement
    matches: bool
    known: UUID | None

    def find_retry(self) -> Made | None:
        """Return the binding of the earlier call if the call is a retry, otherwise None."""
        return None if self.known is None else self.make(self.known, is_retry=True, sent_at=None)

    def make(self, binding_id: UUID, *, is_retry: bool, sent_at: datetime | None) -> Made:
        """Return the binding with this id at this placement."""
        is_open, at_seq = self.placement.is_open, self.placement.at_seq
        named = self.named.message if self.named else None
        turn_seq = find_turn_seq(self.newest, named) if is_open else at_seq
        return Made(binding_id, is_retry, is_open, at_seq, turn_seq, self.matches, sent_at)


async def _locate(db_session: DbSession, head: Head, call: Call, *, now: datetime) -> _Located:
    newest = await queries.find_newest(db_session, head.line)
    named = await _find_named(db_session, head, call.target, newest)
    placement = choose_placement(newest, named.message if named else None, call.target)
    same = (call.tool, call.character, call.identity)
    since = now - timedelta(seconds=RETRY_WINDOW_S)
    in_sight = placement.is_open or named is None or named.in_sight
    known = await queries.find_known(db_session, head.line, placement, newest, same, since=since, in_sight=in_sight)
    matches = not placement.is_open and in_sight
    return _Located(newest, named, placement, matches, known)


async def discard(db_session: DbSession, ref: ChatRef, *, character: str | None, now: datetime) -> int:
    """Drop the open calls, of one character or of all, and return how many there were.

    Raises ChatNotFound, and Invalid for a character that the chat does not have.
    """
    head = await lock_head(db_session, ref)
    if character is not None:
        characters = (await get_line(db_session, ref, head.line_id)).characters
        if not accepts(characters, character):
            raise _refused(word_unknown(characters), "character")
        character = head.current_name(character)
    waiting = await queries.list_open(db_session, head.line) if _count_open(head) else []
    dropped = [one for one in waiting if character is None or one.character == character]
    if not dropped:
        record_nothing(db_session, head.line)
        return 0
    await queries.drop(db_session, head.line, [one.binding_id for one in dropped])
    _note_open(head, len(waiting) - len(dropped))
    gone = [Dropped(one.layer, one.binding_id, one.turn_seq) for one in dropped]
    defer(db_session, BindingsChanged(head=head, now=now, settle_s=db_session.settle_s, dropped=gone))
    return len(dropped)


async def list_calls(db_session: DbSession, line: queries.Line, *, after: UUID | None, limit: int) -> Sequence[Binding]:
    """Return a page of a line's bindings, in the order of the calls."""
    return await queries.list_bindings(db_session, line, after=after, limit=limit)


async def list_positions(
    db_session: DbSession, line: queries.Line, binding_ids: Sequence[UUID]
) -> dict[UUID, Position]:
    """Return the position of each binding on a line, by id; ids without a binding are left out."""
    return await queries.list_positions(db_session, line, binding_ids) if binding_ids else {}


# --- what follows from changes of the line ---


async def on_append(db_session: DbSession, event: MessagesAppended) -> BindingsChanged | None:
    """Bind the open calls whose replies were appended; drop a call if a user message came before its reply."""
    head = event.head
    if not _count_open(head):
        return None
    waiting = await queries.list_open(db_session, head.line)
    fresh = [message for message in event.fresh if message.seq not in event.moved]
    return await _resolve(db_session, event, waiting, fresh)


async def on_texts(db_session: DbSession, event: TextsAdded) -> BindingsChanged | None:
    """Bind the open calls that wait for the next alternatives of the messages."""
    head = event.head
    if not _count_open(head):
        return None
    waiting = await queries.list_open(db_session, head.line)
    found = resolve_texts(waiting, event.texts)
    return await _finish(db_session, event, waiting, found, left=len(waiting) - len(found))


async def on_change(db_session: DbSession, event: MessagesChanged) -> BindingsChanged | None:
    """Compare the changed messages with the bound texts, and drop open calls whose reply cannot come any more.

    A restored message counts as an appended one: an open call can be bound to it.
    """
    head = event.head
    if CURSOR not in head.cursors:
        return None
    rows = await queries.recheck(db_session, head.line, [after.seq for _, after in event.pairs])
    toggled = [Toggled(row["layer"], row["binding_id"], row["matches"]) for row in rows]
    if not _count_open(head):
        return _changed(event, toggled=toggled) if toggled else None
    waiting = await queries.list_open(db_session, head.line)
    changed = [after for _, after in event.pairs]
    dropped = [one for one in waiting if is_discarded(one, changed)]
    seqs = [after.seq for before, after in event.pairs if before.deleted and not after.deleted]
    restored = await queries.list_at(db_session, head.line, seqs) if seqs else []
    waiting = [one for one in waiting if one not in dropped]
    return await _resolve(db_session, event, waiting, restored, toggled=toggled, dropped=dropped)


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Delete the bindings from `event.from_seq` on. The layers themselves delete the rows that they wrote, by seq."""
    if CURSOR in event.head.cursors:
        await queries.truncate(db_session, event.head.line, event.from_seq)
        await _recount_open(db_session, event.head)


async def on_rename(db_session: DbSession, event: CharacterRenamed) -> None:
    """Give the bindings and the recorded calls of a renamed character its new name."""
    await records.rename_character(db_session, event.head.line, event.former, event.name)
    if CURSOR in event.head.cursors:
        await queries.rename_character(db_session, event.head.line, event.former, event.name)


async def on_move(db_session: DbSession, event: MessagesMoved) -> None:
    """Copy the other line's bindings after `kept_seq`: those whose reply exists on this line, and most open ones.

    `queries.copy_open` leaves some open ones out. The `at_seq` of an open binding is converted to a seq of this line
    (`event.seq_here`).
    """
    head = event.head
    if CURSOR not in head.cursors:
        return
    await queries.copy_bound(db_session, head.line, event.from_line_id, event.kept_seq)
    waiting = await queries.list_open(db_session, (head.chat_key, event.from_line_id))
    moved = [(one.binding_id, event.seq_here(one.at_seq)) for one in waiting if one.at_seq > event.kept_seq]
    await queries.copy_open(db_session, head.line, event.from_line_id, moved)
    await _recount_open(db_session, head)


async def _resolve(
    db_session: DbSession,
    event: LineEvent,
    waiting: Sequence[Open],
    fresh: Sequence[Appended],
    *,
    toggled: Sequence[Toggled] = (),
    dropped: Sequence[Open] = (),
) -> BindingsChanged | None:
    """Write the outcomes of the open calls `waiting` when `fresh` messages arrive, and return the event, if any.

    The event also contains `toggled`, which the caller has stored already, and `dropped`, which are deleted here.
    """
    head = event.head
    resolved = [(one, resolve(one, fresh)) for one in waiting]
    found = [
        (one.binding_id, what.message_id, None) for one, what in resolved if what.outcome == "bound" and what.message_id
    ]
    dropped = [*dropped, *(one for one, what in resolved if what.outcome == "dropped")]
    waits = [(one, what) for one, what in resolved if what.outcome == "waits"]
    answered = [one for one, what in waits if one.awaits_user and not what.awaits_user]
    if answered:
        record(db_session, head.line, *(one.layer for one in answered), in_context=False)
        await queries.await_reply(db_session, head.line, [one.binding_id for one in answered])
    return await _finish(db_session, event, waiting, found, dropped, toggled, left=len(waits))


async def _finish(
    db_session: DbSession,
    event: LineEvent,
    waiting: Sequence[Open],
    found: Sequence[tuple[UUID, str, str | None]],
    dropped: Sequence[Open] = (),
    toggled: Sequence[Toggled] = (),
    *,
    left: int,
) -> BindingsChanged | None:
    """Write the outcomes of open calls; `left` is how many calls stay open.

    `found` has the form that `queries.bind` takes, and contains only bindings that are in `waiting`.
    """
    _note_open(event.head, left)
    if not found and not dropped and not toggled:
        return None
    rows = await queries.bind(db_session, event.head.line, found)
    if dropped:
        await queries.drop(db_session, event.head.line, [one.binding_id for one in dropped])
    order = {binding_id: index for index, (binding_id, *_) in enumerate(found)}
    turn_seqs = {one.binding_id: one.turn_seq for one in waiting}
    bound = [Bound._make((*row, turn_seqs[row["binding_id"]])) for row in rows]
    bound.sort(key=lambda one: order[one.binding_id])
    gone = [Dropped(one.layer, one.binding_id, one.turn_seq) for one in dropped]
    return _changed(event, bound=bound, toggled=toggled, dropped=gone)


async def _find_named(db_session: DbSession, head: Head, target: Target, newest: LogMessage | None) -> Named | None:
    """Return the message that a call names; None if it names none or the message is not stored yet. Raises Invalid.

    With `target.next_swipe`, a call that names none means the newest message.
    """
    message_id = target.message_id
    if message_id is None:
        if not target.next_swipe:
            return None
        if newest is None or not is_reply(newest, ""):
            raise _refused("is required with swipe=next, because the newest message is not a reply")
        message_id = newest.message_id
    named = await queries.find_named(db_session, head.line, message_id)
    if named is None:
        if target.next_swipe:
            raise _refused("must be the id of an existing message with swipe=next")
        return None
    if named.deleted:
        raise _refused("is the id of a deleted message; give the id of an existing or a new one")
    if named.message.role != "assistant":
        raise _refused("must be the id of an assistant message; what a tool writes belongs to a reply")
    return named


def _values(call: Call, placement: Placement, made: Made, newest: LogMessage | None, now: datetime) -> dict[str, Any]:
    return {
        "binding_id": made.binding_id,
        "layer": call.layer,
        "tool": call.tool,
        "character": call.character,
        "identity": call.identity,
        "asked_id": newest.message_id if newest else None,
        "asked_hash": newest.text_hash if newest else None,
        "message_id": placement.message_id,
        "next_swipe": placement.next_swipe,
        "awaits_user": placement.awaits_user,
        "at_seq": placement.at_seq,
        "text_hash": placement.text_hash,
        "is_open": made.is_open,
        "matches": made.matches,
        "created_at": now,
    }


def _changed(event: LineEvent, **parts: Any) -> BindingsChanged:
    return BindingsChanged(head=event.head, now=event.now, settle_s=event.settle_s, **parts)


def _count_open(head: Head) -> int:
    return int(head.cursors.get(CURSOR, {}).get("open", 0))


def _note_open(head: Head, count: int) -> None:
    head.cursors[CURSOR] = {"open": count}


async def _recount_open(db_session: DbSession, head: Head) -> None:
    _note_open(head, await queries.count_open(db_session, head.line))


def _refused(message: str, field: str = "message_id") -> Invalid:
    return Invalid(f"{field}: {message}", errors=[{"loc": ["query", field], "msg": message}])
