"""What goes over the wire about messages."""

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from app.kit.blame import FieldError
from app.kit.wire import MAX_CONTENT_CHARS, MAX_SEQ, Given, JsonObject, Moment, Name, Text

MAX_MESSAGES = 1_000
MAX_RANGES = 1_000
MAX_REIMPORT_MESSAGES = 100_000


def _fits_a_path(message_id: str) -> str:
    if message_id in (".", ".."):
        raise ValueError("may not be . or .., because clients take these out of a path")
    return message_id


MessageId = Annotated[Text, Field(min_length=1, max_length=128), AfterValidator(_fits_a_path)]


class ToolFunction(Given):
    """The function of a tool call."""

    name: Annotated[Text, Field(min_length=1, max_length=200)] = Field(description="The tool's name.")
    arguments: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] = Field(
        "", description="Its arguments as JSON text."
    )


class ToolCall(Given):
    """A call of a tool by the model, in OpenAI's shape."""

    id: Annotated[Text, Field(min_length=1, max_length=200)] = Field(description="The call's id.")
    type: Literal["function"] = Field("function", description="Always `function`.")
    function: ToolFunction = Field(description="What is called.")


class MessageIn(Given):
    """A message to append."""

    id: MessageId | None = Field(None, description="The caller's id; a UUIDv7 is made if none is given.")
    role: Literal["user", "assistant", "system", "tool", "narrator"] = Field(description="Who speaks, as a role.")
    name: Name | None = Field(None, description="Who speaks, by name.")
    content: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] = Field(
        "", description="The text, 1–100,000 characters; may be empty only with `tool_calls`."
    )
    kind: Literal["thought"] | None = Field(None, description="`thought` marks a model's thinking.")
    sent_at: Moment | None = Field(None, description="When it was said; now if not given. Order is `seq`.")
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        None, description="How much it matters, if the caller knows."
    )
    tool_calls: Annotated[list[ToolCall], Field(min_length=1, max_length=64)] | None = Field(
        None, description="The tools the model calls."
    )
    tool_call_id: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="With role `tool`: the call this is the result of."
    )
    metadata: JsonObject | None = Field(None, description="The caller's own; at most 16 KiB.")

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if not self.content and not self.tool_calls:
            raise FieldError(("content",), "may be empty only when tool_calls is set")
        return self


def refuse_twins(messages: Iterable[MessageIn]) -> None:
    """Raises FieldError where two of a request's `messages` have the same id."""
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message.id is None:
            continue
        if message.id in seen:
            raise FieldError(("messages", index, "id"), "is given twice")
        seen.add(message.id)


class MessageOut(BaseModel):
    """An appended message, or the one that was there already."""

    id: str = Field(description="Its id.")
    seq: int = Field(description="Its place on the line.")
    role: str = Field(description="Its role.")
    name: str | None = Field(description="Who speaks.")
    content: str = Field(description="What it says now.")
    sent_at: datetime = Field(description="When it was said.")
    tokens: int = Field(description="Tokens of the text (o200k).")


class MessageDetail(MessageOut):
    """A message with everything that is known of it."""

    kind: str | None = Field(description="`thought`, or null.")
    importance: float | None = Field(description="As given.")
    tool_calls: list[dict[str, Any]] | None = Field(description="As given.")
    tool_call_id: str | None = Field(description="As given.")
    metadata: dict[str, Any] | None = Field(description="As given.")
    swipes: list[str] = Field(description="All alternative texts; only the text itself if there are none.")
    selected_swipe: int = Field(description="Which of the swipes is selected.")
    excluded: bool = Field(description="Whether it is never summarised.")
    pinned: bool = Field(description="Whether it is kept verbatim.")
    hidden_by: Literal["user", "scenes"] | None = Field(description="Who hid it.")
    edited: bool = Field(description="Whether its text was changed.")
    memo_id: UUID | None = Field(description="The memo of its batch.")


class MessagePatch(Given):
    """What to change of a message: what is left out or null stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"content": "I found your letter in the *drowned* lamp room.", "pinned": True}]}
    )

    content: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] | None = Field(
        None, description="Another text; what it said before is kept, and memos that tell of it are made again."
    )
    excluded: bool | None = Field(None, description="Whether never to summarise it.")
    pinned: bool | None = Field(None, description="Whether to keep it verbatim once it is out of the history.")
    hidden: bool | None = Field(
        None, description="Whether neither to send nor to summarise it; false shows it, whoever hid it."
    )
    metadata: JsonObject | None = Field(None, description="Replaces the caller's own; at most 16 KiB.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_dump(exclude_none=True):
            raise FieldError(("content",), "give at least one of content, excluded, pinned, hidden, metadata")
        return self


class SwipeIn(Given):
    """An alternative text of a message."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "Then you know why I never left."}]})

    content: Annotated[Text, Field(min_length=1, max_length=MAX_CONTENT_CHARS)] = Field(description="The text.")


class SwipeSelect(Given):
    """Which swipe of a message to select."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"index": 0}]})

    index: Annotated[int, Field(ge=0, le=MAX_SEQ)] = Field(description="Its place among the swipes, from 0.")


class RevisionOut(BaseModel):
    """What a message said before an edit."""

    number: int = Field(description="Counts the message's revisions, from 1.")
    role: str = Field(description="Its role then.")
    name: str | None = Field(description="Who spoke.")
    content: str = Field(description="What it said.")
    swipe: int = Field(description="Which of the swipes was edited.")
    replaced_at: datetime = Field(description="When it was edited.")


class VisibilityRange(Given):
    """A run of messages to hide or to show."""

    from_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(description="The first of them.")
    to_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(description="The last of them, inclusive.")
    hidden: bool = Field(description="Whether to hide them, or to show them, whoever hid them.")

    @model_validator(mode="after")
    def _runs_forward(self) -> Self:
        if self.from_seq > self.to_seq:
            raise FieldError(("to_seq",), f"must be at least from_seq, {self.from_seq}")
        return self


class VisibilityIn(Given):
    """Which messages to hide and to show."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ranges": [{"from_seq": 1, "to_seq": 2, "hidden": True}]}]}
    )

    ranges: Annotated[list[VisibilityRange], Field(min_length=1, max_length=MAX_RANGES)] = Field(
        description="Ranges in any order that do not overlap."
    )

    @model_validator(mode="after")
    def _do_not_overlap(self) -> Self:
        places = sorted(range(len(self.ranges)), key=lambda place: self.ranges[place].from_seq)
        for former, place in pairwise(places):
            if self.ranges[place].from_seq <= self.ranges[former].to_seq:
                raise FieldError(("ranges", place, "from_seq"), f"overlaps ranges[{former}]")
        return self


class VisibilityOut(BaseModel):
    """What hiding and showing has changed."""

    changed: int = Field(description="For how many messages it is new.")


class MessagesPut(Given):
    """What a chat's messages are to be."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "messages": [
                        {"id": "m1", "role": "user", "name": "Mira", "content": "I found your letter."},
                        {"id": "m2", "role": "assistant", "name": "Kai", "content": "Then you know why I stayed."},
                    ]
                }
            ]
        }
    )

    messages: Annotated[list[MessageIn], Field(max_length=MAX_REIMPORT_MESSAGES)] = Field(
        description="All of them, in order; a body may take 8 MiB."
    )

    @model_validator(mode="after")
    def _unique_ids(self) -> Self:
        refuse_twins(self.messages)
        return self


class MessagesPutOut(BaseModel):
    """What a re-import has changed."""

    added: int = Field(description="Messages that the chat did not have, or no longer.")
    changed: int = Field(description="Messages that say something else than before.")
    removed: int = Field(description="Messages that the list does not have.")
    line: UUID = Field(description="The current line: another one if messages were inserted or reordered.")
