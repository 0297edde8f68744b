"""Reads JSONL of messages: one message per line, in the form that append takes. Pure.

The first line may describe the chat instead, with any fields of `PUT /v1/chats/{chat_id}`:

    {"chat": {"characters": [{"name": "Quill", "persona": "…"}], "time_zone": "Europe/Dublin"}}
    {"id": "m001", "role": "user", "content": "Hello?", "sent_at": "2025-09-06T18:43:00+01:00"}
    {"id": "m002", "role": "assistant", "name": "Quill", "content": "You are nine minutes late."}
"""

from typing import Any

from app.transfer.transcript import Line, Transcript, TranscriptError, build_transcript, read_lines

CHAT_FIELDS = frozenset(
    {
        "user_id",
        "characters",
        "user_name",
        "user_persona",
        "system_prompt",
        "settings",
        "time_zone",
        "language",
        "metadata",
    }
)


def read_jsonl(text: str) -> Transcript:
    """Return the conversation in `text`. A message without an id gets one from its line number.

    Raises TranscriptError.
    """
    lines = list(read_lines(text))
    has_header = bool(lines) and "chat" in lines[0].fields and "role" not in lines[0].fields
    chat = _read_header(lines.pop(0)) if has_header else {}
    return build_transcript(chat, (_name(line) for line in lines))


def _read_header(line: Line) -> dict[str, Any]:
    """Return the chat in the first line. Only its field names are checked; the service validates the values."""
    chat = line.fields["chat"]
    if not isinstance(chat, dict):
        raise TranscriptError(line.number, "chat: must be a JSON object")
    if unknown := sorted(chat.keys() - CHAT_FIELDS):
        raise TranscriptError(line.number, f"chat: unknown field {unknown[0]!r}")
    return chat


def _name(line: Line) -> Line:
    if line.fields.get("id") is not None:
        return line
    return Line(line.number, line.fields | {"id": f"line-{line.number:06}"})
