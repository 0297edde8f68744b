"""Operations on messages: append them, list a page, get one.

An append is one transaction. If the chat exists and no message has swipes, the append needs three statements: lock the
row of the current line, insert the messages, write the head (columns of the line's row). Creating a chat or storing
swipes needs a few more. The append defers `MessagesAppended`. Before the commit, `app/pipeline.py` calls the handlers
of that event, which send statements of their own, and then writes the head.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from app.chats.chat_lock import ChatRef, lock_or_create
from app.chats.errors import MessageIdTaken, MessageNotFound
from app.chats.events import count_appended
from app.chats.hashes import content_digest, identity
from app.chats.head import NewMessage
from app.chats.models import Message, Revision
from app.chats.revision import record_append, record_nothing
from app.kit.db import DbSession, defer
from app.kit.ids import uuid7
from app.kit.paging import MAX_PAGE_BYTES, count_fitting
from app.kit.tokens import count_tokens
from app.messages import change_queries
from app.messages import queries as message_queries
from app.messages.echoes import without_echo
from app.messages.reads import list_messages, list_sizes
from app.messages.schemas import MessageIn

_MANY_CHARS, _MANY_MESSAGES = 200_000, 1_000
"""Counting the tokens of this much text, or of this many texts, takes about 10 ms."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a page of messages. They are exclusive, except `around_seq`, which is in the middle of the page."""

    after_seq: int | None = None
    before_seq: int | None = None
    around_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: all messages in the request's order, and how many of them are new."""

    messages: list[dict[str, Any]]
    created: int


async def append_messages(
    db_session: DbSession, ref: ChatRef, given: Sequence[MessageIn], *, now: datetime
) -> Appended:
    """Append messages, creating the chat if it is missing; existing messages do not change, and get no swipes.

    A former name of a character is stored as its current name. If an id was appended before with another role or text,
    nothing is appended: raises MessageIdTaken, which names these ids.
    """
    messages = await make_messages(given, now)
    head, created = await lock_or_create(db_session, ref, now)
    if head.renamed:
        messages = [head.with_current_name(message) for message in messages]
    if head.settings.timestamps == "inline":
        messages = [without_echo(head, message) for message in messages]
    rows = {row["message_id"]: row for row in await message_queries.insert_messages(db_session, head, messages)}
    _refuse_taken([message.message_id for message in messages], rows)
    fresh = [
        message._replace(seq=rows[message.message_id]["seq"])
        for message in messages
        if rows[message.message_id]["same"] is None
    ]
    if fresh:
        await message_queries.insert_given_swipes(db_session, head, fresh)
        event = count_appended(head, fresh, now=now, settle_s=db_session.settle_s, created=created)
        defer(db_session, event)
        record_append(db_session, head.line)
    else:
        record_nothing(db_session, head.line)
    return Appended([_appended(message, rows[message.message_id]) for message in messages], len(fresh))


async def make_messages(given: Sequence[MessageIn], now: datetime) -> list[NewMessage]:
    """Return the given messages with tokens and hashes.

    Large inputs are processed in a thread, so that other requests do not wait.
    """

    def make() -> list[NewMessage]:
        return [_new_message(message, now) for message in given]

    long = len(given) > _MANY_MESSAGES or sum(len(message.content) for message in given) > _MANY_CHARS
    return await asyncio.to_thread(make) if long else make()


async def list_page(
    db_session: DbSession, ref: ChatRef, line_id: UUID, bounds: Bounds, limit: int
) -> tuple[Sequence[Message], bool]:
    """Return a page of messages in seq order, and whether later ones within the bounds follow it.

    The page has at most MAX_PAGE_BYTES of text, swipes included, but at least one message.
    """
    line = (ref.key, line_id)
    if bounds.around_seq is not None:
        return await _list_around(db_session, line, bounds.around_seq, limit)
    newest = bounds.before_seq is not None and bounds.after_seq is None
    within: dict[str, Any] = {"after_seq": bounds.after_seq or 0, "before_seq": bounds.before_seq, "newest": newest}
    sizes = await list_sizes(db_session, *line, limit=limit + 1, **within)
    fitting = count_fitting(sizes[:limit], MAX_PAGE_BYTES)
    messages = await list_messages(db_session, *line, limit=fitting, **within)
    return messages, not newest and len(sizes) > fitting


async def _list_around(
    db_session: DbSession, line: tuple[UUID, UUID], seq: int, limit: int
) -> tuple[Sequence[Message], bool]:
    """Return what `list_page` returns, for the page with the message at `seq` in the middle.

    The earlier messages get at most half of the page. If the nearest earlier message is larger than half a page, it is
    the only earlier one. If it is so large that the message at `seq` would not fit, the page has no earlier message.
    """
    earlier: dict[str, Any] = {"after_seq": 0, "before_seq": seq, "newest": True}
    later: dict[str, Any] = {"after_seq": seq - 1, "before_seq": None, "newest": False}
    before_sizes = await list_sizes(db_session, *line, limit=limit // 2, **earlier)
    after_sizes = await list_sizes(db_session, *line, limit=limit + 1, **later)
    left_bytes = MAX_PAGE_BYTES - sum(after_sizes[:1])
    has_room = not after_sizes or sum(before_sizes[:1]) <= left_bytes
    before = count_fitting(before_sizes, min(left_bytes, MAX_PAGE_BYTES // 2), least=int(has_room))
    after = count_fitting(after_sizes[: limit - before], MAX_PAGE_BYTES - sum(before_sizes[:before]))
    messages = [
        *await list_messages(db_session, *line, limit=before, **earlier),
        *await list_messages(db_session, *line, limit=after, **later),
    ]
    return messages, len(after_sizes) > after


async def get_message(db_session: DbSession, ref: ChatRef, line_id: UUID, message_id: str) -> Message:
    """Return a message by the caller's id. Raises MessageNotFound."""
    message = await message_queries.find_message(db_session, ref.key, line_id, message_id)
    if message is None:
        raise MessageNotFound(f"There is no message {message_id!r} in this chat.")
    return message


async def list_revisions(
    db_session: DbSession, message: Message, *, before: int | None, limit: int
) -> tuple[Sequence[Revision], bool]:
    """Return a page of the revisions of a message, newest first, and whether older ones follow it.

    With `before`, only revisions with lower numbers are returned. The page has at most MAX_PAGE_BYTES of text, but at
    least one revision.
    """
    place = (message.chat_key, message.line_id, message.seq)
    sizes = await change_queries.list_revision_sizes(db_session, *place, before=before, limit=limit + 1)
    fitting = count_fitting(sizes[:limit], MAX_PAGE_BYTES)
    found = await change_queries.list_revisions(db_session, *place, before=before, limit=fitting)
    return found, len(sizes) > fitting


def count_said(content: str, *, calls: bool) -> int:
    """Return the tokens of a message's text; 0 for a message that only calls a tool, so that it is not summarised."""
    return 0 if calls and not content.strip() else count_tokens(content)


def _new_message(given: MessageIn, now: datetime) -> NewMessage:
    return NewMessage(
        message_id=given.id or str(uuid7()),
        role=given.role,
        name=given.name,
        kind=given.kind,
        content=given.content,
        tokens=count_said(given.content, calls=bool(given.tool_calls)),
        blank=not given.content.strip() and not given.tool_calls,
        importance=given.importance,
        tool_calls=orjson.dumps([call.model_dump() for call in given.tool_calls]).decode()
        if given.tool_calls
        else None,
        tool_call_id=given.tool_call_id,
        metadata=orjson.dumps(given.metadata).decode() if given.metadata is not None else None,
        sent_at=given.sent_at or now,
        identity=identity(given.role, given.content),
        digest=content_digest(given.role, given.name, given.content),
        swipes=given.swipes or (),
        selected_swipe=given.selected_swipe or 0,
    )


def _refuse_taken(message_ids: Sequence[str], rows: Mapping[str, Any]) -> None:
    """Raise MessageIdTaken if one of the request's ids has a row with another identity."""
    errors = [
        {"loc": ["body", "messages", index, "id"], "msg": "was appended before with another role or text", "id": taken}
        for index, taken in enumerate(message_ids)
        if taken in rows and rows[taken]["same"] is False
    ]
    if errors:
        raise MessageIdTaken(
            "An id was appended before with another role or text; nothing was appended.", errors=errors
        )


def _appended(message: NewMessage, row: Any) -> dict[str, Any]:
    shown: Any = row if row["role"] else None  # a deleted message may have been edited; its last text is not returned
    answer = {
        "id": message.message_id,
        "seq": row["seq"],
        "role": shown["role"] if shown else message.role,
        "name": shown["name"] if shown else message.name,
        "content": shown["content"] if shown else message.content,
        "sent_at": row["sent_at"] or message.sent_at,
        "tokens": shown["tokens"] if shown else message.tokens,
    }
    return answer | {"deleted": True} if row["same"] and not shown else answer


def message_detail(message: Message, swipes: Sequence[str], memo_id: UUID | None) -> dict[str, Any]:
    """Return a message as JSON."""
    return {
        "id": message.message_id,
        "seq": message.seq,
        "role": message.role,
        "name": message.name,
        "content": message.content,
        "sent_at": message.sent_at,
        "tokens": message.tokens,
        "kind": message.kind,
        "importance": message.importance,
        "tool_calls": message.tool_calls,
        "tool_call_id": message.tool_call_id,
        "metadata": message.message_metadata,
        "swipes": swipes,
        "selected_swipe": message.selected_swipe,
        "excluded": message.excluded,
        "pinned": message.pinned,
        "hidden_by": message.hidden_by,
        "edited": message.edited_at is not None,
        "memo_id": memo_id,
    }
