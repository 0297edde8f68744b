"""What a format of lines reads and writes; `records.py` explains the source of a line and kept lines."""

from typing import Protocol

from app.transfer.records import ChatRecord, Entry, FileHeader, Ids, Json, Record, Source
from app.transfer.transcript import Line


class LineFormat(Protocol):
    """A format with a JSON object on each line."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def read_header(self, line: Line, /) -> FileHeader | None:
        """Return what the first line says of the chat, or None if it is no header. Raises TranscriptError."""
        ...

    def read_missing_header(self) -> Source:
        """Return what to store as the header of a file that has none."""
        ...

    def read(self, line: Line, ids: Ids, /) -> Entry:
        """Return a line after the header as an entry: a message or a kept line. Raises TranscriptError."""
        ...

    def write_header(self, chat: ChatRecord, source: Source, /) -> Json | None:
        """Return the first line, or None if the file gets no header."""
        ...

    def write(self, record: Record, source: Source, number: int, /) -> Json:
        """Return the line of a message; `number` is its line number."""
        ...

    def write_kept(self, source: Source, /) -> Json:
        """Return a kept line, which is no message."""
        ...
