"""The verbs that change messages: edit, exclude, pin, hide, delete, cut off the end.

Nothing is lost by them: an edit keeps what the text was, a delete leaves a tombstone with it. Each counts itself
into the head and defers what follows from it, so that in one transaction the memory is true again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.chats import change_queries
from app.chats.access import ChatRef, lock_head
from app.chats.change_queries import recounting_turns
from app.chats.errors import MessageNotFound
from app.chats.events import LineTruncated, MessagesChanged, Pair, count_changes
from app.chats.hashes import content_digest
from app.chats.head import Head, RangeMessage
from app.chats.models import Message, Revision
from app.chats.revision import MESSAGES, record, record_nothing
from app.kit.db import DbSession, defer
from app.kit.errors import Invalid
from app.kit.tokens import count_tokens


async def edit_message(
    db_session: DbSession, ref: ChatRef, message_id: str, given: Mapping[str, Any], *, now: datetime
) -> Message:
    """Change what `given` names of a message: content, excluded, pinned, hidden, metadata; None is the default.

    Raises MessageNotFound, also for one that was deleted, and Invalid for an empty text without a tool call.
    """
    head, message = await lock_message(db_session, ref, message_id)
    before = as_range(message)
    if "content" in given and given["content"] != message.content:
        if not given["content"] and not message.tool_calls:
            raise Invalid(
                "Only a message with tool calls may be empty.",
                errors=[{"loc": ["body", "content"], "msg": "may be empty only when tool_calls is set"}],
            )
        await keep_revision(db_session, message, now)
        say(message, given["content"])
        message.edited_at = now
    if "hidden" in given:
        _set_hidden(message, given["hidden"])
    for name in ("excluded", "pinned"):
        if name in given:
            setattr(message, name, bool(given[name]))
    if "metadata" in given:
        message.message_metadata = given["metadata"]
    await save_message(db_session, head, before, message, now)
    return message


async def delete_message(db_session: DbSession, ref: ChatRef, message_id: str, *, now: datetime) -> None:
    """Leave a tombstone. Raises MessageNotFound, also for one that was deleted."""
    head, message = await lock_message(db_session, ref, message_id)
    before = as_range(message)
    async with recounting_turns(db_session, head, message.seq, message.seq):
        message.deleted_at = now
        await save_message(db_session, head, before, message, now)


async def cut_off_end(db_session: DbSession, ref: ChatRef, from_seq: int, *, now: datetime) -> None:
    """Leave tombstones from `from_seq` on; beyond the head there is nothing to do. Raises ChatNotFound."""
    head = await lock_head(db_session, ref)
    if from_seq > head.head_seq:
        record_nothing(db_session, head.line)
        return
    left = await change_queries.list_left_from(db_session, head, from_seq)
    async with recounting_turns(db_session, head, from_seq, head.head_seq):
        await change_queries.cut_off(db_session, head, from_seq, now)
    count_changes(head, [(message, message._replace(deleted=True)) for message in left])
    defer(db_session, LineTruncated(head=head, now=now, settle_s=db_session.settle_s, from_seq=from_seq))


async def set_visibility(
    db_session: DbSession, ref: ChatRef, ranges: Sequence[change_queries.Visibility], *, now: datetime
) -> int:
    """Hide and show ranges that do not overlap; returns for how many messages that is new. Raises ChatNotFound."""
    head = await lock_head(db_session, ref)
    pairs = await change_queries.hide(db_session, head, ranges)
    if not pairs:
        record_nothing(db_session, head.line)
    note(db_session, head, pairs, now)
    return len(pairs)


async def hide_by_scenes(
    db_session: DbSession,
    head: Head,
    hidden: Sequence[tuple[int, int]],
    shown: Sequence[tuple[int, int]],
    *,
    now: datetime,
) -> int:
    """Have scenes hide `hidden` and show `shown` again (ranges, inclusive); returns for how many messages that is new.

    What a person hides or keeps in sight stays as it is. The chat's row is locked.
    """
    pairs = await change_queries.hide_by_scenes(db_session, head, hidden, shown)
    note(db_session, head, pairs, now)
    return len(pairs)


async def lock_message(db_session: DbSession, ref: ChatRef, message_id: str) -> tuple[Head, Message]:
    """A message of the current line, whose row is locked. Raises ChatNotFound, MessageNotFound."""
    head = await lock_head(db_session, ref)
    message = await change_queries.find_message_or_tombstone(db_session, *head.line, message_id)
    if message is None:
        raise MessageNotFound(f"There is no message {message_id!r} in this chat.")
    if message.deleted:
        raise MessageNotFound(f"The message {message_id!r} was deleted; only a checkpoint or another line has it.")
    return head, message


def _set_hidden(message: Message, hidden: bool | None) -> None:
    """Hide a message for a person, or show it; None withdraws either choice.

    Auto-hide never hides what a person has shown, and never shows what a person hides.
    """
    if hidden is None:
        message.kept_shown = False
        message.hidden_by = None if message.hidden_by == "user" else message.hidden_by
    else:
        message.kept_shown = not hidden and (message.kept_shown or message.hidden_by is not None)
        message.hidden_by = "user" if hidden else None


async def keep_revision(db_session: DbSession, message: Message, now: datetime) -> None:
    """Keep what a message says before it says something else."""
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


def say(message: Message, content: str) -> None:
    """Have a message say `content`, with all that is told by it."""
    message.content = content
    message.tokens = count_tokens(content)
    message.blank = not content.strip() and not message.tool_calls
    message.digest = content_digest(message.role, message.name, content)


async def save_message(
    db_session: DbSession, head: Head, before: RangeMessage, message: Message, now: datetime
) -> None:
    """Write a message that was changed, and what follows if it is another for those who read the line."""
    if db_session.is_modified(message):
        record(db_session, head.line, MESSAGES)
    else:
        record_nothing(db_session, head.line)
    await db_session.flush()
    note(db_session, head, [(before, as_range(message))], now)


def note(db_session: DbSession, head: Head, pairs: Sequence[Pair], now: datetime) -> None:
    """Count changes into the head and defer what follows from them; a pair of equals is none."""
    changed = [(before, after) for before, after in pairs if before != after]
    if changed:
        count_changes(head, changed)
        defer(db_session, MessagesChanged(head=head, now=now, settle_s=db_session.settle_s, pairs=changed))


def as_range(message: Message) -> RangeMessage:
    """What eligibility and hashes are judged by."""
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
