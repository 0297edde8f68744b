"""What reading a conversation from a file gives: a chat, and its messages as append takes them. Pure.

Every reader turns lines into messages its own way and has them checked here, so that a file is refused as a
whole, with the line to blame, before anything of it is stored. Whoever opens the file decodes it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import orjson
from pydantic import AwareDatetime, BaseModel, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError


class TranscriptError(ValueError):
    """A file is no conversation; the text is one line that names the file's line and the problem."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Line:
    """One JSON object of a file.

    Attributes:
        number: Its line, from 1.
        fields: What it says, unchecked.

    """

    number: int
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation, ready to be sent.

    Attributes:
        chat: The body of `PUT /v1/chats/{chat_id}`; `characters` is there if anyone is known.
        messages: In the file's order, in the form of `POST …/messages`, each with an `id` and something said.
        skipped: How many lines said nothing in the conversation.
        hidden: The ids of those messages that the file hides from the model.

    """

    chat: dict[str, Any]
    messages: list[dict[str, Any]]
    skipped: int = 0
    hidden: list[str] = field(default_factory=list)


def read_lines(text: str) -> Iterator[Line]:
    """The JSON objects of `text`, one a line, without blank lines. Raises TranscriptError.

    Only a line feed ends a line: JSON strings may hold every other separator unescaped.
    """
    for number, written in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not written.strip():
            continue
        try:
            fields = orjson.loads(written)
        except orjson.JSONDecodeError as error:
            raise TranscriptError(number, f"not JSON at column {error.colno}: {error.msg}") from None
        if not isinstance(fields, dict):
            raise TranscriptError(number, "not a JSON object")
        yield Line(number, fields)


def build_transcript(chat: dict[str, Any], lines: Iterable[Line]) -> Transcript:
    """Check `lines` as messages of `chat`; where it has no characters, those who spoke are its characters.

    White space alone is nothing said: such a line is counted as skipped, unless it calls a tool.
    Raises TranscriptError for the first line that append would refuse, also for an id that came before.
    """
    messages: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    skipped = 0
    for line in lines:
        message = _check(line)
        if not (message.content.strip() or message.tool_calls):
            skipped += 1
            continue
        if message.id in places:
            raise TranscriptError(line.number, f"id: {message.id!r} is on line {places[message.id]} too")
        places[message.id] = line.number
        messages.append(message.to_append())
    return Transcript(_with_speakers(chat, messages), messages, skipped)


class _Message(BaseModel):
    """The append form; what a line says beyond it is left out. Append judges the size of metadata."""

    id: Annotated[str, Field(min_length=1, max_length=128)]
    role: Literal["user", "assistant", "system", "tool", "narrator"]
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    content: Annotated[str, Field(max_length=100_000)]
    kind: Literal["thought"] | None = None
    sent_at: AwareDatetime | None = None
    importance: Annotated[float, Field(ge=0, le=1)] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    metadata: dict[str, Any] | None = None

    @field_validator("id", "name", "content", "tool_call_id")
    @classmethod
    def _refuse_nul(cls, text: str | None) -> str | None:
        if text and "\0" in text:
            raise PydanticCustomError("nul", "NUL characters are refused")
        return text

    def to_append(self) -> dict[str, Any]:
        """As JSON, without what is not said. Nested values stay as they were read, however deep."""
        said = {name: value for name, value in self if value is not None}
        return said | ({"sent_at": self.sent_at.isoformat()} if self.sent_at else {})


def _check(line: Line) -> _Message:
    try:
        return _Message.model_validate(line.fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise TranscriptError(line.number, f"{place}: {first['msg']}") from None


def _with_speakers(chat: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    spoke = (message.get("name") for message in messages if message["role"] == "assistant")
    characters = [{"name": name} for name in dict.fromkeys(spoke) if name]
    return {"characters": characters, **chat} if characters else chat
