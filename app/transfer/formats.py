"""Detects the format of a conversation file. Pure."""

from typing import Literal

from app.transfer.jsonl import read_jsonl
from app.transfer.sillytavern import read_sillytavern
from app.transfer.transcript import Transcript, TranscriptError, read_lines

Format = Literal["jsonl", "sillytavern"]

_SILLYTAVERN_FIELDS = frozenset({"chat_metadata", "user_name", "character_name", "mes", "is_user"})


def sniff(text: str) -> Format:
    """Return the format of `text`, judging by its first line that is not blank; the default is `jsonl`."""
    try:
        first = next(read_lines(text), None)
    except TranscriptError:
        return "jsonl"
    return "sillytavern" if first and first.fields.keys() & _SILLYTAVERN_FIELDS else "jsonl"


def read_transcript(text: str) -> Transcript:
    """Return the conversation in `text`, whose format is detected. Raises TranscriptError."""
    return read_sillytavern(text) if sniff(text) == "sillytavern" else read_jsonl(text)
