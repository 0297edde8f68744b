"""Which of the formats a file is in. Pure."""

from typing import Literal

from app.transfer.jsonl import read_jsonl
from app.transfer.sillytavern import read_sillytavern
from app.transfer.transcript import Transcript, TranscriptError, read_lines

Format = Literal["jsonl", "sillytavern"]

_SILLYTAVERN_FIELDS = frozenset({"chat_metadata", "user_name", "character_name", "mes", "is_user"})


def sniff(text: str) -> Format:
    """The format of `text` by its first line that is not blank; what is neither counts as `jsonl`."""
    try:
        first = next(read_lines(text), None)
    except TranscriptError:
        return "jsonl"
    return "sillytavern" if first and first.fields.keys() & _SILLYTAVERN_FIELDS else "jsonl"


def read_transcript(text: str) -> Transcript:
    """Read a conversation in whichever format it is. Raises TranscriptError."""
    return read_sillytavern(text) if sniff(text) == "sillytavern" else read_jsonl(text)
