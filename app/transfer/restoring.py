"""Makes a chat from a file of lines, in one transaction.

The file is read twice: first as a whole, so that an invalid file is refused before a connection is taken, then in
batches that are appended. `records.py` explains what is kept of the file's lines.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

import orjson

from app.chats.chat_lock import ChatRef, lock_head, lock_or_create
from app.chats.errors import ChatTaken
from app.chats.head import Head
from app.chats.renaming import rename
from app.chats.schemas import Character, ChatPut
from app.chats.service import put_chat
from app.kit.db import Database, DbSession
from app.kit.wire import STORED
from app.messages.importing import Marked, SourceRow, add_sources, append_marked
from app.messages.service import make_messages
from app.transfer.errors import InvalidFile
from app.transfer.file_lines import read_file
from app.transfer.line_format import LineFormat
from app.transfer.records import MAX_SPEAKERS, Entry, FileHeader, Ids, Source, check_fields
from app.transfer.transcript import TranscriptError

_BATCH = 500
_BATCH_BYTES = 4 * 1024 * 1024
"""A batch ends with the line that makes it longer than this."""


@dataclass
class _Outline:
    """What has to be known of a file before its messages are appended."""

    chat: ChatPut
    source: Source


async def read_lines(database: Database, ref: ChatRef, file: BinaryIO, now: datetime, form: LineFormat) -> None:
    """Make the chat `ref` from a file. Raises InvalidFile, ChatTaken, and what `put_chat` raises."""
    try:
        outline = await asyncio.to_thread(_examine, file, form)
    except TranscriptError as error:
        raise InvalidFile(str(error), errors=[{"loc": ["body", error.line], "msg": error.problem}]) from None
    async with database.unit_of_work(ref.tenant, ref.key) as db_session:
        head = await _create(db_session, ref, outline, now)
        if outline.source:
            await add_sources(db_session, head, [SourceRow(0, 0, _dump(outline.source))])
        batches = _form_batches(file, form)
        position = _Position()
        while batch := await asyncio.to_thread(next, batches, None):
            await _append(db_session, head, batch, position, now)


async def _create(db_session: DbSession, ref: ChatRef, outline: _Outline, now: datetime) -> Head:
    """Create the chat, with its characters under their present and former names, and return its head."""
    _, created = await lock_or_create(db_session, ref, now)
    if not created:
        raise taken(ref)
    characters = outline.chat.characters or []
    names = [one.name for one in characters]
    for one in characters:  # created under its first name and then renamed, which stores the former names
        one.name = _first_name(one)
    await put_chat(db_session, ref, outline.chat, now=now)
    await db_session.run_deferred()
    for one, name in zip(characters, names, strict=True):
        for following in [*(one.aliases or [])[1:], name] if one.aliases else []:
            await rename(db_session, ref, one.name, following, now=now)
            await db_session.run_deferred()
            one.name = following
    return await lock_head(db_session, ref)


@dataclass
class _Position:
    """Where the next line of the file belongs: after the message at `seq` and its kept lines (`kept` counts them)."""

    seq: int = 0
    kept: int = 0


async def _append(db_session: DbSession, head: Head, batch: list[Entry], position: _Position, now: datetime) -> None:
    """Append the messages of a batch, and store the sources of all of its lines."""
    found = [(entry, entry.message) for entry in batch if entry.message is not None]
    made = await make_messages([message for _, message in found], now)
    marked = [
        Marked(
            new._replace(excluded=message.excluded, hidden_by=message.is_hidden_by),
            message.pinned,
            message.is_kept_shown,
        )
        for new, (_, message) in zip(made, found, strict=True)
    ]
    seqs = iter(await append_marked(db_session, head, marked, now=now) if marked else ())
    rows = []
    for entry in batch:
        if entry.message is None:
            position.kept += 1
            rows.append(SourceRow(position.seq, position.kept, _dump(entry.source)))
            continue
        position.seq, position.kept = next(seqs), 0
        if entry.source:
            rows.append(SourceRow(position.seq, 0, _dump(entry.source)))
    await add_sources(db_session, head, rows)


def taken(ref: ChatRef) -> ChatTaken:
    """Return the error for a chat that exists already."""
    return ChatTaken(
        f"There is already a chat {ref.chat_id!r}; choose another chat_id.",
        errors=[{"loc": ["query", "chat_id"], "msg": "is taken", "id": ref.chat_id}],
    )


def _examine(file: BinaryIO, form: LineFormat) -> _Outline:
    """Check every line of a file, and return what it says of the chat. Raises TranscriptError."""
    header, number = _read_header(file, form)
    chat = dict(header.chat)
    speakers: dict[str, None] = {}
    for entry in _read_entries(file, form):
        name = entry.message.name if entry.message and entry.message.role == "assistant" else None
        if name and name not in (".", "..") and len(speakers) < MAX_SPEAKERS:
            speakers.setdefault(name)
    if "characters" not in chat and speakers:
        chat["characters"] = [{"name": name} for name in speakers]
    checked = check_fields(number, lambda: ChatPut.model_validate(chat, context=STORED))
    characters = checked.characters or []
    if len({_first_name(one) for one in characters}) < len(characters):
        problem = "characters: must not have a name that is a former name of another character"
        raise TranscriptError(number, problem)
    return _Outline(checked, header.source)


def _read_header(file: BinaryIO, form: LineFormat) -> tuple[FileHeader, int]:
    """Return the header of a file and the number of its first line that is not blank.

    If the file has no header, return an empty one with the source that `read_missing_header` returns.
    """
    first = next(read_file(file), None)
    header = form.read_header(first) if first else None
    return header or FileHeader({}, form.read_missing_header()), first.number if first else 1


def _first_name(character: Character) -> str:
    return character.aliases[0] if character.aliases else character.name


def _read_entries(file: BinaryIO, form: LineFormat) -> Iterator[Entry]:
    """Yield the lines of a file after the header. Raises TranscriptError."""
    ids = Ids()
    for index, line in enumerate(read_file(file)):
        if index or form.read_header(line) is None:
            yield form.read(line, ids)


def _form_batches(file: BinaryIO, form: LineFormat) -> Iterator[list[Entry]]:
    """Yield the lines of a file after the header in batches to append; a batch of long lines has fewer of them."""
    batch, start = list[Entry](), 0
    for entry in _read_entries(file, form):
        batch.append(entry)
        if len(batch) >= _BATCH or file.tell() - start > _BATCH_BYTES:
            yield batch
            batch, start = [], file.tell()
    if batch:
        yield batch


def _dump(source: Source) -> str:
    return orjson.dumps(source).decode()
