"""Writes a chat as a file of lines, page by page.

Each page is read in a transaction of its own, so that no connection is occupied while a client reads slowly. A message
is written as it is when its page is read; messages that are appended during the export are not in the file.

If the chat was imported, the parts of the imported file for which the service has no fields are exported again: the
*source* of a message, and *kept* lines, which are no messages (`records.py`).
"""

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from uuid import UUID

import asyncpg
import orjson

from app.chats import service as chats
from app.chats.characters import list_active
from app.chats.chat_lock import ChatRef
from app.chats.models import ChatLine, Message
from app.chats.settings import still_valid
from app.kit.db import Database
from app.messages.reads import find_user_name, list_speakers
from app.messages.service import Bounds, list_page
from app.messages.source_lines import list_sources
from app.messages.swipes import list_swipes
from app.transfer.line_format import LineFormat
from app.transfer.records import MAX_SPEAKERS, ChatRecord, Json, Record, Source

_PAGE = 200
SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_HEADER = (0, 0)


async def write_lines(database: Database, ref: ChatRef, line: UUID | None, form: LineFormat) -> AsyncIterator[bytes]:
    """Return the file of a chat in parts. Raises ChatNotFound and LineNotFound before the first part.

    The parts raise ChatNotFound or LineNotFound if the chat or the line is deleted meanwhile.
    """
    async with database.unit_of_work(ref.tenant) as db_session:
        await db_session.raw.execute(SNAPSHOT)
        chat = await chats.get_line(db_session, ref, line)
        speakers = await list_speakers(db_session, chat.chat_key, chat.line_id, MAX_SPEAKERS)
        user_name = chat.user_name or await find_user_name(db_session, chat.chat_key, chat.line_id)
        rows = await list_sources(db_session, chat.chat_key, chat.line_id, (-1, 0), 1)
    header = orjson.loads(rows[0]["source"]) if rows and (rows[0]["seq"], rows[0]["number"]) == _HEADER else {}
    header_line = form.write_header(describe_chat(chat, speakers), header)
    return _write(database, ref, chat, user_name, header_line, form)


async def _write(
    database: Database, ref: ChatRef, chat: ChatLine, user_name: str | None, header: Json | None, form: LineFormat
) -> AsyncIterator[bytes]:
    number = 1
    if header is not None:
        yield _encode(header)
        number = 2
    sources = _Sources(database, chat)
    after_seq, more = 0, True
    while more:
        messages, texts, more = await _read_page(database, ref, chat, after_seq)
        for message in messages:
            async for kept in sources.kept_before(message.seq):
                yield _encode(form.write_kept(kept))
                number += 1
            record = _make_record(chat, user_name, message, texts[message.seq])
            yield _encode(form.write(record, await sources.take(message.seq), number))
            number += 1
            after_seq = message.seq
    async for kept in sources.kept_before(None):
        yield _encode(form.write_kept(kept))


async def _read_page(
    database: Database, ref: ChatRef, chat: ChatLine, after_seq: int
) -> tuple[Sequence[Message], Mapping[int, list[str]], bool]:
    """Return a page of messages, their texts, and whether more follow, up to the newest seq when the export began."""
    async with database.unit_of_work(chat.tenant) as db_session:
        await db_session.raw.execute(SNAPSHOT)
        await chats.get_line(db_session, ref, chat.line_id)  # an erased chat must not look like a short one
        bounds = Bounds(after_seq=after_seq, before_seq=chat.head_seq + 1)
        messages, more = await list_page(db_session, ref, chat.line_id, bounds, _PAGE)
        return messages, await list_swipes(db_session, messages), more


class _Sources:
    """The stored sources and kept lines of a chat, in the order of the imported file; one page at most is in memory."""

    def __init__(self, database: Database, chat: ChatLine) -> None:
        self._database = database
        self._chat = chat
        self._page: deque[asyncpg.Record] = deque()
        self._after = _HEADER
        self._ended = False

    async def kept_before(self, seq: int | None) -> AsyncIterator[Source]:
        """Yield the kept lines before the message at `seq`; all that are left if `seq` is None."""
        while (row := await self._peek()) is not None and (seq is None or row["seq"] < seq):
            self._page.popleft()
            # A row with the number 0 is the source of a message. `take` removes the row if the message still exists, so
            # a row that is left here belongs to a deleted message.
            if row["number"]:
                yield orjson.loads(row["source"])

    async def take(self, seq: int) -> Source:
        """Return the source of a message. Call `kept_before` for this message first."""
        row = await self._peek()
        if row is None or (row["seq"], row["number"]) != (seq, 0):
            return {}
        source: Source = orjson.loads(self._page.popleft()["source"])
        return source

    async def _peek(self) -> asyncpg.Record | None:
        if not self._page and not self._ended:
            async with self._database.unit_of_work(self._chat.tenant) as db_session:
                self._page.extend(await list_sources(db_session, *self._line, self._after, _PAGE))
            self._ended = not self._page
            if self._page:
                self._after = (self._page[-1]["seq"], self._page[-1]["number"])
        return self._page[0] if self._page else None

    @property
    def _line(self) -> tuple[UUID, UUID]:
        return self._chat.chat_key, self._chat.line_id


def describe_chat(chat: ChatLine, speakers: list[str]) -> ChatRecord:
    """Return a chat as a file describes it, with those of its stored settings that are still valid."""
    characters = [{name: value for name, value in one.items() if name != "hashed_name"} for one in chat.characters]
    fields = {
        "user_id": chat.user_id,
        "characters": characters,
        "user_name": chat.user_name,
        "user_persona": chat.user_persona,
        "system_prompt": chat.system_prompt,
        "settings": still_valid(chat.settings) or None,
        "time_zone": None if chat.time_zone == "UTC" else chat.time_zone,
        "language": chat.language,
        "metadata": chat.chat_metadata or None,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return ChatRecord(given, speakers, chat.created_at)


def _make_record(chat: ChatLine, user_name: str | None, message: Message, texts: list[str]) -> Record:
    return Record(
        message_id=message.message_id,
        role=message.role,
        name=message.name,
        content=message.content,
        kind=message.kind,
        sent_at=message.sent_at,
        importance=message.importance,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        metadata=message.message_metadata,
        swipes=texts,
        selected_swipe=message.selected_swipe,
        excluded=message.excluded,
        pinned=message.pinned,
        hidden_by=message.hidden_by,
        is_kept_shown=message.visibility_pinned,
        speaker=_find_speaker(chat, user_name, message.role),
    )


def _find_speaker(chat: ChatLine, user_name: str | None, role: str) -> str | None:
    """Return who speaks in a message without a name, if that is certain."""
    active = list_active(chat.characters)
    if role == "user":
        return user_name
    return active[0]["name"] if role == "assistant" and len(active) == 1 else None


def _encode(fields: Json) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)
