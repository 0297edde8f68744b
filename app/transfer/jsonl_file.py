"""The format `jsonl`: one message a line, in the form that append takes, after a line that describes the chat.

    {"chat": {"characters": [{"name": "Quill"}], "time_zone": "Europe/Dublin"}}
    {"id": "m001", "role": "user", "content": "Hello?", "sent_at": "2025-09-06T17:43:00Z", "pinned": true}

Append would refuse a line with an empty text and without tool calls. Such a line is no message, but is kept in its
place.
"""

from collections.abc import Collection

from app.transfer.jsonl import CHAT_FIELDS
from app.transfer.records import (
    OTHERS,
    ChatRecord,
    Entry,
    FileHeader,
    FileMessage,
    Ids,
    Json,
    Record,
    Source,
    check_message,
    describe,
    is_silent,
    read_others,
    without,
)
from app.transfer.transcript import Line, TranscriptError

NAME = "jsonl"

_FIELDS = FileMessage.model_fields.keys()


class JsonlLines:
    """Reads and writes the lines of a file."""

    name = NAME

    def read_header(self, line: Line) -> FileHeader | None:
        """Return what the first line says of the chat, or None if it is no header. Raises TranscriptError."""
        fields = line.fields
        if "chat" not in fields or "role" in fields:
            return None
        if not isinstance(fields["chat"], dict):
            raise TranscriptError(line.number, "chat: must be a JSON object")
        chat = {name: value for name, value in fields["chat"].items() if name in CHAT_FIELDS}
        unknown = {name: value for name, value in fields["chat"].items() if name not in CHAT_FIELDS}
        own, others = _part(fields, {"chat"})
        own |= {"chat": unknown} if unknown else {}
        return FileHeader(chat, others | ({NAME: own} if own else {}))

    def read_missing_header(self) -> Source:
        """Return what to store as the header of a file that has none."""
        return {}

    def read(self, line: Line, ids: Ids) -> Entry:
        """Return a line as an entry: a message or a kept line. Raises TranscriptError."""
        number, fields = line.number, line.fields
        own, others = _part(fields, _FIELDS)
        if fields.keys() == {OTHERS} and others:
            return Entry(number, None, others)
        if "role" in fields and is_silent(fields):
            return Entry(number, None, {NAME: fields})
        given = {name: value for name, value in fields.items() if name in _FIELDS and value is not None}
        if "id" not in given:
            given["id"] = ids.make(f"line-{number:06}")
        elif isinstance(given["id"], str) and not ids.claim(given["id"]):
            raise TranscriptError(number, f"id: {given['id']!r} is on an earlier line too; must be unique")
        return Entry(number, check_message(number, given), others | ({NAME: own} if own else {}))

    def write_header(self, chat: ChatRecord, source: Source) -> Json:
        """Return the first line."""
        own = dict(source.get(NAME) or {})
        unknown = own.pop("chat", {})
        return {"chat": chat.fields | unknown, **own, **_others(source)}

    def write(self, record: Record, source: Source, _number: int) -> Json:
        """Return the line of a message."""
        name = {} if record.name is None else {"name": record.name}
        said = {"id": record.message_id, "role": record.role, **name, "content": record.content}
        return {**said, "sent_at": record.sent_at, **describe(record), **(source.get(NAME) or {}), **_others(source)}

    def write_kept(self, source: Source) -> Json:
        """Return a kept line, which is no message."""
        return source.get(NAME) or _others(source)


def _part(fields: Json, known: Collection[str]) -> tuple[Json, Source]:
    """Return the fields of a line that are not `known`, and the sources of other formats in its field `OTHERS`.

    Both are stored, so that an export has them again (`records.py`).
    """
    others = read_others(fields.get(OTHERS), NAME)
    skipped = {*known, *(() if others is None else (OTHERS,))}
    return {name: value for name, value in fields.items() if name not in skipped}, others or {}


def _others(source: Source) -> Json:
    others = without(source, NAME)
    return {OTHERS: others} if others else {}
