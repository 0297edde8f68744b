"""Writes a chat with every layer as a zip, from one snapshot of the database and without loading all of it at once."""

import asyncio
import tempfile
import zipfile
from collections.abc import AsyncIterator, Sequence
from typing import IO
from uuid import UUID

from app.chats.chat_lock import ChatRef
from app.chats.models import CURRENT, ChatLine
from app.chats.service import get_line
from app.kit.db import Database, DbSession
from app.kit.ids import tenant_key
from app.vault import queries
from app.vault.archive import STATE
from app.vault.manifest import MARKS, Manifest, write_manifest
from app.vault.pages import Pages
from app.vault.state_file import write_end, write_head, write_row, write_table
from app.vault.tables import list_vault_tables

_CHUNK_BYTES = 64 * 1024
_IN_MEMORY_BYTES = 1024 * 1024
_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of all entries: a vault does not contain the time of its export."""


async def stream_vault(database: Database, ref: ChatRef, line: UUID | None) -> AsyncIterator[bytes]:
    """Return the zip of a chat in chunks. Raises what `write_vault` raises, before the first chunk.

    The zip is written to a temporary file first, so a slow reader occupies neither a connection nor a snapshot.
    """
    file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - `_send` closes it
    try:
        await write_vault(database, ref, line, file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return _send(file)


async def _send(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield chunk


async def write_vault(database: Database, ref: ChatRef, line: UUID | None, file: IO[bytes]) -> None:
    """Write the zip of a chat to a seekable file; its pages show `line`, or the current line.

    If the caller's token is limited to the chat, the vault contains no facts, blocks or memories of a wider scope (the
    user or the tenant). Raises ChatNotFound, LineNotFound, Unavailable.
    """
    async with database.snapshot(ref.tenant) as db_session:
        chat = await get_line(db_session, ref, line)
        await queries.begin(db_session)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            pages = Pages(db_session, ref, chat, chat.last_active_at)
            async for name, parts in pages.list_pages():
                await _write_entry(archive, name, parts)
            await _write_entry(archive, "transcript.jsonl", pages.write_transcript())
            await _write_entry(archive, MARKS, _write_marks(pages, archive.namelist()))
            await _write_entry(archive, STATE, _write_state(db_session, ref, chat))


async def _write_marks(pages: Pages, names: Sequence[str]) -> AsyncIterator[str]:
    """Yield `marks.json`, given the names of the files before it."""
    line = "" if pages.chat.line_status == CURRENT else str(pages.chat.line_id)
    yield write_manifest(Manifest(line, [*names, MARKS, STATE], pages.digests))


async def _write_state(db_session: DbSession, ref: ChatRef, chat: ChatLine) -> AsyncIterator[str]:
    """Yield `state.json` in parts."""
    scopes = (None, None) if ref.only_chat else (chat.user_key, tenant_key(ref.tenant))
    yield write_head()
    for number, table in enumerate(list_vault_tables()):
        yield write_table(table.name, is_first=number == 0)
        parameters: tuple[UUID | None, ...] = (ref.key, *(scopes if table.has_scopes else ()))
        is_first = True
        async for (row,) in queries.stream(db_session, table.select, *parameters):
            yield write_row(row, is_first=is_first)
            is_first = False
    yield write_end()


async def _write_entry(archive: zipfile.ZipFile, name: str, parts: AsyncIterator[str]) -> None:
    """Write one file of the zip. It is compressed in a thread, so that other requests go on meanwhile."""
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    with archive.open(info, "w") as entry:
        waiting = bytearray()
        async for part in parts:
            waiting += part.encode()
            if len(waiting) >= _CHUNK_BYTES:
                await asyncio.to_thread(entry.write, bytes(waiting))
                waiting.clear()
        await asyncio.to_thread(entry.write, bytes(waiting))
