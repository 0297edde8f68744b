"""A conversation that was read from a file: a chat, and its messages in the form that append takes. Pure.

Each reader converts lines to messages in its own way and validates them here. So an invalid file is rejected as a
whole, with the number of the invalid line, before any of it is stored. The caller opens and decodes the file.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import orjson
from pydantic import AwareDatetime, BaseModel, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from app.kit.validation_errors import word_error


class TranscriptError(ValueError):
    """The file is not a valid conversation; the message is one line with the line number and the problem."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Line:
    """One JSON object of a file.

    Attributes:
        number: Its line number, from 1.
        fields: Its fields, not validated.

    """

    number: int
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation, ready to be sent.

    Attributes:
        chat: The body of `PUT /v1/chats/{chat_id}`, with `characters` if any are known.
        messages: In the file's order, in the form of `POST …/messages`, each with an `id` and with a text or tool
            calls.
        skipped: The number of lines that are not messages of the conversation.
        hidden: The ids of the messages that the file hides from the model.

    """

    chat: dict[str, Any]
    messages: list[dict[str, Any]]
    skipped: int = 0
    hidden: list[str] = field(default_factory=list)


def read_lines(text: str) -> Iterator[Line]:
    """Yield the JSON objects of `text`, one per line, without blank lines. Raises TranscriptError.

    Only a line feed ends a line, because JSON strings may contain other line separators, such as U+2028, unescaped.
    """
    for number, written in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not written.strip():
            continue
        try:
            fields = orjson.loads(written)
        except orjson.JSONDecodeError as error:
            raise TranscriptError(number, f"not JSON at column {error.colno}: {error.msg}") from None
        if not isinstance(fields, dict):
            raise TranscriptError(number, "must be a JSON object")
        yield Line(number, fields)


def build_transcript(chat: dict[str, Any], lines: Iterable[Line]) -> Transcript:
    """Return `chat` with `lines` as its messages; if it has no characters, the speakers are its characters.

    A line whose content is blank is skipped, unless it calls a tool.
    Raises TranscriptError for the first line that append would reject, or whose id is used already.
    """
    messages: list[dict[str, Any]] = []
    line_numbers: dict[str, int] = {}
    skipped = 0
    for line in lines:
        message = _check(line)
        if not (message.content.strip() or message.tool_calls):
            skipped += 1
            continue
        if message.id in line_numbers:
            raise TranscriptError(
                line.number, f"id: {message.id!r} is also on line {line_numbers[message.id]}; must be unique"
            )
        line_numbers[message.id] = line.number
        messages.append(message.to_append())
    return Transcript(_with_speakers(chat, messages), messages, skipped)


class _Message(BaseModel):
    """A message in the form that append takes; other fields are dropped. Append checks the size of metadata."""

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
    swipes: Annotated[list[Annotated[str, Field(min_length=1, max_length=100_000)]], Field(max_length=1_000)] | None = (
        None
    )
    selected_swipe: Annotated[int, Field(ge=0)] | None = None

    @field_validator("id", "name", "content", "tool_call_id", "swipes")
    @classmethod
    def _refuse_nul(cls, given: str | list[str] | None) -> str | list[str] | None:
        if any("\0" in text for text in ([given] if isinstance(given, str) else given or ())):
            raise PydanticCustomError("nul", "must not contain NUL characters")
        return given

    @field_validator("swipes")
    @classmethod
    def _ignore_none(cls, swipes: list[str] | None) -> list[str] | None:
        return swipes or None

    @field_validator("swipes")
    @classmethod
    def _need_content(cls, swipes: list[str] | None, info: ValidationInfo) -> list[str] | None:
        if swipes and info.data.get("content") not in swipes:
            raise PydanticCustomError("swipes", "must contain content")
        return swipes

    @field_validator("selected_swipe")
    @classmethod
    def _refuse_contradiction(cls, index: int | None, info: ValidationInfo) -> int | None:
        swipes, content = info.data.get("swipes"), info.data.get("content")
        if index is not None and (swipes is None or index >= len(swipes) or swipes[index] != content):
            raise PydanticCustomError("swipe", "must be the index of content in swipes")
        return index

    def to_append(self) -> dict[str, Any]:
        """Return the message as JSON without absent fields. Nested values are not changed, at any depth."""
        said = {name: value for name, value in self if value is not None}
        return said | ({"sent_at": self.sent_at.isoformat()} if self.sent_at else {})


def _check(line: Line) -> _Message:
    try:
        return _Message.model_validate(line.fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise TranscriptError(line.number, f"{location}: {word_error(first)}") from None


def _with_speakers(chat: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    spoke = (message.get("name") for message in messages if message["role"] == "assistant")
    characters = [{"name": name} for name in dict.fromkeys(spoke) if name]
    return {"characters": characters, **chat} if characters else chat
