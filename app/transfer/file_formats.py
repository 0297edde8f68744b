"""The formats in which a chat is exported and imported: one entry each."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import BinaryIO, Final
from uuid import UUID

from app.chats.chat_lock import ChatRef
from app.kit.db import Database
from app.transfer.exporting import write_lines
from app.transfer.jsonl_file import JsonlLines
from app.transfer.line_format import LineFormat
from app.transfer.restoring import read_lines
from app.transfer.sillytavern_file import SillyTavernLines
from app.transfer.transcript_file import TranscriptLines
from app.transfer.vault_file import NAME, read_vault
from app.vault.export import stream_vault


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of files.

    Attributes:
        name: Its name in requests and on the command line.
        media_type: The media type of a file.
        suffix: How the name of a file ends, with the dot.
        write: Returns a chat's file in parts, for the given line or the current one. Raises ChatNotFound and
            LineNotFound before the first part.
        read: Makes a chat from a seekable file, in one transaction. Raises InvalidFile, ChatTaken.

    """

    name: str
    media_type: str
    suffix: str
    write: Callable[[Database, ChatRef, UUID | None], Awaitable[AsyncIterator[bytes]]]
    read: Callable[[Database, ChatRef, BinaryIO, datetime], Awaitable[None]]


def _of_lines(form: LineFormat) -> FileFormat:
    return FileFormat(
        form.name,
        "application/jsonl",
        ".jsonl",
        partial(write_lines, form=form),
        partial(read_lines, form=form),
    )


FILE_FORMATS: Final = {
    one.name: one
    for one in (
        _of_lines(SillyTavernLines()),
        _of_lines(JsonlLines()),
        _of_lines(TranscriptLines()),
        FileFormat(NAME, "application/zip", ".zip", stream_vault, read_vault),
    )
}
"""The formats by name."""
