"""One line of a file of messages, in the form that all formats share.

A line of a file can have fields that the service does not know, or would write in another way. These fields are the
*source* of the line. A source has one object for each format, because a chat can be imported from one format, exported
in another, and imported again. The source is stored beside the message. An export writes the fields of its own format
where the imported line had them, and the sources of other formats below the field `OTHERS`. A line that is no message,
such as a note of a frontend, is *kept*: all of it is stored as a source, with its position between the messages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from app.kit.validation_errors import error_location, word_error
from app.kit.wire import MAX_CONTENT_CHARS, Text
from app.messages.schemas import MAX_SWIPES, MessageId, MessageIn
from app.transfer.transcript import TranscriptError

Json = dict[str, Any]
Model = TypeVar("Model")

OTHERS = "other_formats"
"""The field below which a file has the sources of other formats."""

FORMATS = ("sillytavern", "jsonl", "transcript")
"""The formats that can have a source."""

MAX_SPEAKERS = 50
"""The maximum length of a chat's list of characters."""

Source = dict[str, Json | None]
"""The source of a line, by format. For a header, None means that the file had no header."""


class FileMessage(MessageIn):
    """A message of a file: the fields that append takes, and marks that a stored message can have."""

    id: MessageId
    swipes: (
        Annotated[
            list[Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)]], Field(min_length=1, max_length=MAX_SWIPES)
        ]
        | None
    ) = None
    excluded: bool = False
    pinned: bool = False
    hidden: bool | None = None
    hidden_by: Literal["user", "scenes"] | None = None

    @property
    def is_hidden_by(self) -> str | None:
        """Who hides the message; None if it is not hidden."""
        return self.hidden_by or ("user" if self.hidden else None)

    @property
    def is_kept_shown(self) -> bool:
        """Whether a person un-hid the message, so that scenes do not hide it."""
        return self.hidden is False and self.hidden_by is None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a file after the header.

    Attributes:
        number: Its line number, from 1.
        message: The message, or None for a line that is no message but is kept in its place.
        source: The source of the line.

    """

    number: int
    message: FileMessage | None
    source: Source = field(default_factory=dict)


class FileHeader(NamedTuple):
    """The beginning of a file: a body of `PUT /v1/chats/{chat_id}`, and the source of the line."""

    chat: Json
    source: Source


@dataclass(frozen=True, slots=True)
class Record:
    """A stored message.

    `swipes` are all of its texts, `content` the one at `selected_swipe`. `speaker` is who speaks if the message
    has no name.
    """

    message_id: str
    role: str
    name: str | None
    content: str
    kind: str | None
    sent_at: datetime
    importance: float | None
    tool_calls: list[Json] | None
    tool_call_id: str | None
    metadata: Json | None
    swipes: list[str]
    selected_swipe: int
    excluded: bool
    pinned: bool
    hidden_by: str | None
    is_kept_shown: bool
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class ChatRecord:
    """A stored chat.

    Attributes:
        fields: The body of a `PUT` that makes the same chat, without fields that are null. `characters` has the
            disabled ones, too.
        speakers: The names of those who speak as a character, in the order in which they first speak.
        created_at: When the chat was created.

    """

    fields: Json
    speakers: list[str]
    created_at: datetime


class Ids:
    """The ids that a file has used so far, so that lines without an id get unused ones."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def claim(self, message_id: str) -> bool:
        """Use an id; return False if it is used already."""
        if message_id in self._used:
            return False
        self._used.add(message_id)
        return True

    def make(self, wanted: str) -> str:
        """Use and return `wanted`, with a number appended if it is used already."""
        message_id, number = wanted, 2
        while not self.claim(message_id):
            message_id, number = f"{wanted}-{number}", number + 1
        return message_id


def describe(record: Record) -> Json:
    """Return the fields of a message that most messages do not have, in the form that `FileMessage` takes."""
    described: Json = {
        "kind": record.kind,
        "importance": record.importance,
        "tool_calls": record.tool_calls or None,
        "tool_call_id": record.tool_call_id,
        "swipes": record.swipes if len(record.swipes) > 1 else None,
        "selected_swipe": record.selected_swipe if len(record.swipes) > 1 else None,
        "metadata": record.metadata,
        "excluded": record.excluded or None,
        "pinned": record.pinned or None,
        "hidden_by": record.hidden_by,
        "hidden": False if record.is_kept_shown else None,
    }
    return {name: value for name, value in described.items() if value is not None}


def check_message(number: int, fields: Mapping[str, Any]) -> FileMessage:
    """Return the message of a line. Raises TranscriptError for one that append would refuse."""
    return check_fields(number, lambda: FileMessage.model_validate(fields))


def check_fields(number: int, validate: Callable[[], Model]) -> Model:
    """Return what `validate` returns; a ValidationError becomes a TranscriptError of the line."""
    try:
        return validate()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(str(part) for part in error_location(first))
        raise TranscriptError(number, f"{location}: {word_error(first)}" if location else word_error(first)) from None


def read_others(value: object, name: str) -> Source | None:
    """Return `value`, a field of a file, if it contains the sources of other formats than `name`; else None."""
    if not isinstance(value, dict) or not value or not value.keys() <= set(FORMATS) - {name}:
        return None
    return value if all(one is None or isinstance(one, dict) for one in value.values()) else None


def without(source: Source, name: str) -> Source:
    """Return the sources of other formats than `name`."""
    return {other: value for other, value in source.items() if other != name}


def is_silent(fields: Json) -> bool:
    """Return whether a line says nothing: its content is empty, and it calls no tool."""
    return fields.get("content") == "" and not fields.get("tool_calls")
