"""Operations that change messages: edit, exclude, pin, hide, delete, cut off the end.

They lose no text: an edit keeps the former text as a revision, and a delete keeps the row as a tombstone. If memories
depend on the change, the counts in the head (columns of the line's row) are updated, and an event is deferred. The
handlers of the event update the memories in the same transaction.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.errors import MessageNotFound
from app.chats.events import LineTruncated, MessagesChanged, Pair, TextsAdded, count_changes
from app.chats.head import Head, RangeMessage
from app.chats.models import Message, Revision
from app.chats.revision import MESSAGES, record, record_nothing
from app.kit.db import DbSession, defer
from app.kit.errors import Invalid
from app.messages import change_queries
from app.messages.change_queries import recounting_turns
from app.messages.echoes import drop_echo
from app.messages.service import count_said


async def edit_message(
    db_session: DbSession, ref: ChatRef, message_id: str, given: Mapping[str, Any], *, now: datetime
) -> Message:
    """Set the fields of a message that `given` has: content, excluded, pinned, hidden, metadata; None resets a field.

    Raises MessageNotFound, also for a deleted message, and Invalid for an empty text without a tool call.
    """
    head, message = await lock_message(db_session, ref, message_id)
    before, was_pinned = as_range(message), message.visibility_pinned
    content = drop_echo(head, message.role, message.name, given.get("content", ""))
    if "content" in given and content != drop_echo(head, message.role, message.name, message.content):
        if not content and not message.tool_calls:
            raise Invalid(
                "Only a message with tool calls may be empty.",
                errors=[{"loc": ["body", "content"], "msg": "may be empty only when tool_calls is set"}],
            )
        await keep_revision(db_session, message, now)
        set_content(head, message, content)
        message.edited_at = now
        note_texts(db_session, head, [(message_id, content)], now)
    if "hidden" in given:
        _set_hidden(message, given["hidden"])
    for name in ("excluded", "pinned"):
        if name in given:
            setattr(message, name, bool(given[name]))
    if "metadata" in given:
        message.message_metadata = given["metadata"]
    unpinned = was_pinned and not message.visibility_pinned
    await save_message(db_session, head, before, message, now, unpinned=unpinned)
    return message


async def delete_message(db_session: DbSession, ref: ChatRef, message_id: str, *, now: datetime) -> None:
    """Soft-delete a message. Raises MessageNotFound, also if it is already deleted."""
    head, message = await lock_message(db_session, ref, message_id)
    before = as_range(message)
    async with recounting_turns(db_session, head, message.seq, message.seq):
        message.deleted_at = now
        await save_message(db_session, head, before, message, now)


async def cut_off_end(db_session: DbSession, ref: ChatRef, from_seq: int, *, now: datetime) -> None:
    """Soft-delete the messages from `from_seq` on, if there are any. Raises ChatNotFound."""
    head = await lock_head(db_session, ref)
    if from_seq > head.head_seq:
        record_nothing(db_session, head.line)
        return
    left = await change_queries.list_left_from(db_session, head, from_seq)
    async with recounting_turns(db_session, head, from_seq, head.head_seq):
        await change_queries.truncate(db_session, head, from_seq, now)
    count_changes(head, [(message, message._replace(deleted=True)) for message in left])
    defer(db_session, LineTruncated(head=head, now=now, settle_s=db_session.settle_s, from_seq=from_seq))


async def set_visibility(
    db_session: DbSession, ref: ChatRef, ranges: Sequence[change_queries.Visibility], *, now: datetime
) -> int:
    """Hide and un-hide ranges that do not overlap; return how many messages changed. Raises ChatNotFound."""
    head = await lock_head(db_session, ref)
    pairs = await change_queries.hide(db_session, head, ranges)
    if not pairs:
        record_nothing(db_session, head.line)
    record_changes(db_session, head, pairs, now)
    return len(pairs)


async def hide_by_scenes(
    db_session: DbSession,
    head: Head,
    hidden: Sequence[tuple[int, int]],
    shown: Sequence[tuple[int, int]],
    *,
    now: datetime,
) -> int:
    """Hide the ranges `hidden` (inclusive) on behalf of scenes and un-hide `shown`; return how many messages changed.

    Messages that a person hid or keeps visible do not change. The caller has locked the line's row.
    """
    pairs = await change_queries.hide_by_scenes(db_session, head, hidden, shown)
    record_changes(db_session, head, pairs, now)
    return len(pairs)


async def lock_message(db_session: DbSession, ref: ChatRef, message_id: str) -> tuple[Head, Message]:
    """Lock the current line and return its head and a message of it. Raises ChatNotFound, MessageNotFound."""
    head = await lock_head(db_session, ref)
    message = await change_queries.find_message_or_tombstone(db_session, *head.line, message_id)
    if message is None:
        raise MessageNotFound(f"There is no message {message_id!r} in this chat.")
    if message.deleted:
        raise MessageNotFound(f"The message {message_id!r} was deleted; a checkpoint or another line may have it.")
    return head, message


def _set_hidden(message: Message, hidden: bool | None) -> None:
    """Hide a message on behalf of a person, or un-hide it; None clears the choice.

    Auto-hide hides old scenes. It never un-hides a message that a person hid. If a person un-hides a hidden message,
    auto-hide leaves it visible until a person hides it or clears the choice. Un-hiding a message that is already
    visible has no effect.
    """
    if hidden is None:
        message.visibility_pinned = False
        message.hidden_by = None if message.hidden_by == "user" else message.hidden_by
    else:
        message.visibility_pinned = not hidden and (message.visibility_pinned or message.hidden_by is not None)
        message.hidden_by = "user" if hidden else None


async def keep_revision(db_session: DbSession, message: Message, now: datetime) -> None:
    """Store the current text of a message as a revision, before it is replaced."""
    number = await change_queries.next_revision(db_session, message)
    db_session.add(
        Revision(
            chat_key=message.chat_key,
            line_id=message.line_id,
            seq=message.seq,
            number=number,
            swipe=message.selected_swipe,
            role=message.role,
            name=message.name,
            content=message.content,
            replaced_at=now,
        )
    )


def set_content(head: Head, message: Message, content: str) -> None:
    """Set the content of a message and the columns computed from it."""
    message.content = content
    message.tokens = count_said(content, calls=bool(message.tool_calls))
    message.blank = not content.strip() and not message.tool_calls
    message.digest = head.digest(message.role, message.name, content)


async def save_message(
    db_session: DbSession,
    head: Head,
    before: RangeMessage,
    message: Message,
    now: datetime,
    *,
    unpinned: bool = False,
) -> None:
    """Write a message, record whether the line has changed, and pass the change to `record_changes`."""
    if db_session.is_modified(message):
        record(db_session, head.line, MESSAGES)
    else:
        record_nothing(db_session, head.line)
    await db_session.flush()
    record_changes(db_session, head, [(before, as_range(message))], now, unpinned=unpinned)


def note_texts(db_session: DbSession, head: Head, texts: Sequence[tuple[str, str]], now: datetime) -> None:
    """Defer `TextsAdded` for new texts, given as (message id, text)."""
    if texts:
        defer(db_session, TextsAdded(head=head, now=now, settle_s=db_session.settle_s, texts=texts))


def record_changes(
    db_session: DbSession,
    head: Head,
    pairs: Sequence[Pair],
    now: datetime,
    *,
    redated: frozenset[int] = frozenset(),
    unpinned: bool = False,
    relinked: bool = False,
) -> None:
    """Update the counts in the head and defer `MessagesChanged`. A pair is a message before and after its change.

    `redated` has the seqs of the messages whose time has changed. Their pairs always count, because memories and caches
    contain dates. Other pairs of two equal messages are ignored. `unpinned` and `relinked` are as in `MessagesChanged`;
    if one of them is true, the event is deferred even without pairs.
    """
    changed = [(before, after) for before, after in pairs if before != after or after.seq in redated]
    if changed or unpinned or relinked:
        count_changes(head, changed)
        event = MessagesChanged(
            head=head,
            now=now,
            settle_s=db_session.settle_s,
            pairs=changed,
            redated=redated,
            unpinned=unpinned,
            relinked=relinked,
        )
        defer(db_session, event)


def as_range(message: Message) -> RangeMessage:
    """Return the fields of a message that decide whether it is summarised, and its digest."""
    return RangeMessage(
        message.seq,
        message.message_id,
        message.role,
        message.name,
        message.kind,
        message.tokens,
        message.blank,
        message.excluded,
        message.hidden_by,
        message.deleted,
        message.digest,
    )
