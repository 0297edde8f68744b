"""Request and response schemas of messages."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.kit.validation_errors import FieldError
from app.kit.wire import (
    MAX_CONTENT_CHARS,
    MAX_SEQ,
    JsonObject,
    Name,
    NullAs,
    Patch,
    PathText,
    RequestModel,
    Text,
    UtcDatetime,
    absent,
)

MAX_MESSAGES = 1_000
MAX_RANGES = 1_000
MAX_SWIPES = 1_000
MAX_REIMPORT_MESSAGES = 100_000


MessageId = Annotated[PathText, Field(min_length=1, max_length=128)]


class ToolFunction(RequestModel):
    """The function of a tool call."""

    name: Annotated[Text, Field(min_length=1, max_length=200)] = Field(description="The tool's name.")
    arguments: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS), NullAs("")] = Field(
        "", description="The arguments, as JSON text."
    )


class ToolCall(RequestModel):
    """A call of a tool by the model, in OpenAI's shape."""

    id: Annotated[Text, Field(min_length=1, max_length=200)] = Field(description="The call's id.")
    type: Annotated[Literal["function"], NullAs("function")] = Field("function", description="Always `function`.")
    function: ToolFunction = Field(description="The function that is called.")


Swipes = Annotated[
    list[Annotated[Text, Field(min_length=1, max_length=MAX_CONTENT_CHARS)]],
    Field(min_length=1, max_length=MAX_SWIPES, fail_fast=True),  # fail_fast: a request can contain a million errors
]
SwipeIndex = Annotated[int, Field(ge=0, lt=MAX_SWIPES)]


class MessageIn(RequestModel):
    """A message to append."""

    id: MessageId | None = Field(None, description="The id, chosen by the caller; a new UUIDv7 by default.")
    role: Literal["user", "assistant", "system", "tool", "narrator"] = Field(description="The role of the speaker.")
    name: Name | None = Field(None, description="The name of the speaker.")
    content: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS), NullAs("")] = Field(
        "",
        description="The text; may be empty only with `tool_calls`. With `swipes`, it is the selected text and may be "
        "left out.",
    )
    swipes: Swipes | None = Field(
        None,
        description="All alternative texts of the message, including the selected one.",
    )
    selected_swipe: SwipeIndex | None = Field(
        None,
        description="With `swipes`: the index of the selected text; by default that of `content`, or else 0.",
    )
    kind: Literal["thought"] | None = Field(None, description="`thought` marks a thought of the model.")
    sent_at: UtcDatetime | None = Field(None, description="When it was sent; now by default.")
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = Field(
        None,
        description="Above 0.6, a memory is made that quotes the message, if nothing else is learnt from it.",
    )
    tool_calls: Annotated[list[ToolCall], Field(min_length=1, max_length=64, fail_fast=True)] | None = Field(
        None, description="The tool calls of the model."
    )
    tool_call_id: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="With role `tool`: the id of the call."
    )
    metadata: JsonObject | None = Field(None, description="The caller's own JSON object; at most 16 KiB.")

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if self.swipes is not None:
            self._select(self.swipes)
        elif self.selected_swipe is not None:
            raise FieldError(("selected_swipe",), "requires swipes, the list of all alternative texts")
        if not self.content and not self.tool_calls:
            raise FieldError(("content",), "may be empty only when tool_calls is set")
        return self

    def _select(self, swipes: Sequence[str]) -> None:
        """Set `content` or `selected_swipe` from the other one. Raises FieldError if they do not match."""
        if self.selected_swipe is None:
            if self.content and self.content not in swipes:
                raise FieldError(("content",), "must be one of swipes; or leave it out to select the first")
            self.selected_swipe = swipes.index(self.content) if self.content else 0
        if self.selected_swipe >= len(swipes):
            raise FieldError(("selected_swipe",), f"must be at most {len(swipes) - 1}, the last index of swipes")
        selected = swipes[self.selected_swipe]
        if self.content and self.content != selected:
            raise FieldError(("content",), "must equal the selected one of swipes; or leave it out")
        self.content = selected


def refuse_twins(messages: Iterable[MessageIn]) -> None:
    """Raise FieldError if two of a request's `messages` have the same id."""
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message.id is None:
            continue
        if message.id in seen:
            raise FieldError(("messages", index, "id"), "is given twice; each id must be unique")
        seen.add(message.id)


class MessageOut(BaseModel):
    """A message."""

    id: str = Field(description="The message's id.")
    seq: int = Field(description="The message's position on the line.")
    role: str = Field(description="The role of the speaker.")
    name: str | None = Field(description="The name of the speaker.")
    content: str = Field(description="The current text.")
    sent_at: datetime = Field(description="When the message was sent.")
    tokens: int = Field(description="The o200k tokens of the text.")


class AppendedOut(MessageOut):
    """An appended message, or the existing message with the same id."""

    deleted: bool = Field(
        False,
        description="True if the message has been deleted since it was first appended, and absent otherwise. The "
        "message stays deleted; `content` is the text of the request, and `sent_at` the stored time.",
    )


class MessageDetail(MessageOut):
    """A message with all of its fields."""

    kind: str | None = Field(description="`thought`, or null.")
    importance: float | None = Field(description="The importance that the caller gave.")
    tool_calls: list[dict[str, Any]] | None = Field(description="The tool calls of the model.")
    tool_call_id: str | None = Field(description="With role `tool`: the id of the call.")
    metadata: dict[str, Any] | None = Field(description="The caller's own JSON object.")
    swipes: list[str] = Field(description="All texts of the message, including `content`.")
    selected_swipe: int = Field(description="The index of `content` in `swipes`, from 0.")
    excluded: bool = Field(description="Whether no summary, fact or memory is made from the message.")
    pinned: bool = Field(description="Whether it stays in the prompt after it has left the history.")
    hidden_by: Literal["user", "scenes"] | None = Field(
        description="`user` if a person hid it, `scenes` if `scenes.auto_hide` did; else null."
    )
    edited: bool = Field(description="Whether the text was edited.")
    memo_id: UUID | None = Field(description="The id of the memo of its batch, or null.")


class MessagePatch(Patch):
    """Changes to a message: a field that is left out keeps its value, null resets it; `content` cannot be null."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"content": "I found your letter in the *drowned* lamp room.", "pinned": True}]}
    )

    content: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] = Field(
        default_factory=absent,
        description="The new text. Memories of the message are made again.",
    )
    excluded: bool | None = Field(
        None,
        description="Make no summary, fact or memory from the message.",
    )
    pinned: bool | None = Field(None, description="Keep the message in the prompt after it has left the history.")
    hidden: bool | None = Field(
        None,
        description="Hide the message from the prompt and from summaries. `false` un-hides it, even if "
        "`scenes.auto_hide` hid it. With null, `scenes.auto_hide` decides again.",
    )
    metadata: JsonObject | None = Field(None, description="Replaces the caller's own JSON object; at most 16 KiB.")


class SwipeIn(RequestModel):
    """An alternative text of a message."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "Then you know why I never left."}]})

    content: Annotated[Text, Field(min_length=1, max_length=MAX_CONTENT_CHARS)] = Field(description="The text.")


class SwipeSelect(RequestModel):
    """Which swipe of a message to select."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"index": 0}]})

    index: Annotated[int, Field(ge=0, le=MAX_SEQ)] = Field(description="The index in `swipes`, from 0.")


class RevisionOut(BaseModel):
    """A message before an edit."""

    number: int = Field(description="The number of the revision, from 1.")
    role: str = Field(description="The role of the speaker.")
    name: str | None = Field(description="The name of the speaker.")
    content: str = Field(description="The former text.")
    swipe: int = Field(description="Its index in `swipes`.")
    replaced_at: datetime = Field(description="When the message was edited.")


class VisibilityRange(RequestModel):
    """A range of messages to hide or to un-hide."""

    first_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(description="The seq of the first message.")
    last_seq: Annotated[int, Field(ge=1, le=MAX_SEQ)] = Field(description="The seq of the last message, inclusive.")
    hidden: bool = Field(
        description="Hide the messages from the prompt and from summaries. `false` un-hides them, even if "
        "`scenes.auto_hide` hid them."
    )

    @model_validator(mode="after")
    def _runs_forward(self) -> Self:
        if self.first_seq > self.last_seq:
            raise FieldError(("last_seq",), f"must be at least first_seq, {self.first_seq}")
        return self


class VisibilityIn(RequestModel):
    """The messages to hide and to un-hide."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"ranges": [{"first_seq": 1, "last_seq": 2, "hidden": True}]}]}
    )

    ranges: Annotated[list[VisibilityRange], Field(min_length=1, max_length=MAX_RANGES)] = Field(
        description="Ranges that do not overlap, in any order."
    )

    @model_validator(mode="after")
    def _do_not_overlap(self) -> Self:
        places = sorted(range(len(self.ranges)), key=lambda place: self.ranges[place].first_seq)
        for former, place in pairwise(places):
            if self.ranges[place].first_seq <= self.ranges[former].last_seq:
                raise FieldError(("ranges", place, "first_seq"), f"must not overlap ranges[{former}]")
        return self


class VisibilityOut(BaseModel):
    """The result of hiding and un-hiding messages."""

    changed: int = Field(description="How many messages were hidden or un-hidden.")


class MessagePut(MessageIn):
    """A message of the complete list. It is added if the chat does not have it.

    If the chat has it, an optional field that is left out keeps its value, and null clears it. The text is always
    required, as `content` or in `swipes`. If the message already has this text, that swipe is selected. Without
    `swipes`, a new text is an edit of the selected swipe.

    With `swipes`:

    - A stored text is kept, whether you send it or not.
    - A new text is added.
    - But if the selected text is new, and the stored text at the same index is not in your list, the selected text
      replaces that stored text. This is an edit.
    """

    swipes: Swipes = Field(
        default_factory=absent,
        description="Alternative texts of the message, including the selected one.",
    )
    selected_swipe: SwipeIndex = Field(
        default_factory=absent,
        description="With `swipes`: the index of the selected text; by default that of `content`, or else 0.",
    )

    sent_at: UtcDatetime = Field(
        default_factory=absent,
        description="When it was sent; for a new message, now by default.",
    )


class MessagesPut(RequestModel):
    """The complete list of a chat's messages."""

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
        description="All messages, in order; the body must not exceed 8 MiB."
    )

    @model_validator(mode="after")
    def _unique_ids(self) -> Self:
        refuse_twins(self.messages)
        return self


class MessagesPutOut(BaseModel):
    """The result of a re-import."""

    added: int = Field(description="How many messages are new, or were deleted and are restored.")
    changed: int = Field(description="How many stored messages changed.")
    removed: int = Field(description="How many messages were deleted.")
    line: UUID = Field(description="The current line.")
