"""What goes over the wire about messages."""

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from app.kit.blame import FieldError
from app.kit.wire import MAX_CONTENT_CHARS, MAX_SEQ, Given, JsonObject, Moment, Name, NullAs, Patch, Text, absent

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
    arguments: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS), NullAs("")] = Field(
        "", description="Its arguments as JSON text."
    )


class ToolCall(Given):
    """A call of a tool by the model, in OpenAI's shape."""

    id: Annotated[Text, Field(min_length=1, max_length=200)] = Field(description="The call's id.")
    type: Annotated[Literal["function"], NullAs("function")] = Field("function", description="Always `function`.")
    function: ToolFunction = Field(description="What is called.")


class MessageIn(Given):
    """A message to append."""

    id: MessageId | None = Field(None, description="The caller's id; a UUIDv7 is made if none is given.")
    role: Literal["user", "assistant", "system", "tool", "narrator"] = Field(description="Who speaks, as a role.")
    name: Name | None = Field(None, description="Who speaks, by name.")
    content: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS), NullAs("")] = Field(
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
    """A message."""

    id: str = Field(description="Its id.")
    seq: int = Field(description="Its place on the line.")
    role: str = Field(description="Its role.")
    name: str | None = Field(description="Who speaks.")
    content: str = Field(description="Its current text.")
    sent_at: datetime = Field(description="When it was said.")
    tokens: int = Field(description="Tokens of the text (o200k).")


class AppendedOut(MessageOut):
    """An appended message, or the one that was there already."""

    deleted: bool = Field(
        False,
        description="Present, and true, only where a retry names a message that was deleted since. It stays deleted; "
        "the text is the one in the request.",
    )


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


class MessagePatch(Patch):
    """What to change of a message: an absent field stays, null returns it to its default."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"content": "I found your letter in the *drowned* lamp room.", "pinned": True}]}
    )

    content: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] = Field(
        default_factory=absent,
        description="The new text. The former one is kept as a revision, and memories of the message are made again.",
    )
    excluded: bool | None = Field(None, description="Keep it out of all summaries. Null is false.")
    pinned: bool | None = Field(None, description="Keep it verbatim once it is out of the history. Null is false.")
    hidden: bool | None = Field(
        None,
        description="Hide it from the prompt and from summaries. `false` un-hides it, even after auto-hide. Null "
        "withdraws either choice: auto-hide decides again from its next run on.",
    )
    metadata: JsonObject | None = Field(None, description="Replaces the caller's own; at most 16 KiB. Null removes it.")


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

    first_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(description="The first message.")
    last_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(description="The last message, inclusive.")
    hidden: bool = Field(description="Hide from the prompt and from summaries. `false` un-hides, even after auto-hide.")

    @model_validator(mode="after")
    def _runs_forward(self) -> Self:
        if self.first_seq > self.last_seq:
            raise FieldError(("last_seq",), f"must be at least first_seq, {self.first_seq}")
        return self


class VisibilityIn(Given):
    """Which messages to hide and to show."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ranges": [{"first_seq": 1, "last_seq": 2, "hidden": True}]}]}
    )

    ranges: Annotated[list[VisibilityRange], Field(min_length=1, max_length=MAX_RANGES)] = Field(
        description="Ranges in any order that do not overlap."
    )

    @model_validator(mode="after")
    def _do_not_overlap(self) -> Self:
        places = sorted(range(len(self.ranges)), key=lambda place: self.ranges[place].first_seq)
        for former, place in pairwise(places):
            if self.ranges[place].first_seq <= self.ranges[former].last_seq:
                raise FieldError(("ranges", place, "first_seq"), f"overlaps ranges[{former}]")
        return self


class VisibilityOut(BaseModel):
    """What hiding and showing has changed."""

    changed: int = Field(description="For how many messages it is new.")


class MessagePut(MessageIn):
    """A message of the list; of one that the chat has, an absent optional field stays, and null clears it."""

    sent_at: Moment = Field(
        default_factory=absent, description="When it was said; of a new message now if not given. Order is `seq`."
    )


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

    messages: Annotated[list[MessagePut], Field(max_length=MAX_REIMPORT_MESSAGES)] = Field(
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
