"""What goes over the wire about contexts."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.chats.message_schemas import MAX_MESSAGES, AppendedOut, MessageIn, refuse_twins
from app.context.in_use import in_use
from app.context.segments import Format
from app.kit.blame import FieldError
from app.kit.wire import MAX_CONTENT_CHARS, Moment, Text

MAX_TOKENS = 10_000_000

Content = Annotated[Text, Field(min_length=1, max_length=MAX_CONTENT_CHARS)]


class OwnSegment(BaseModel):
    """A text of the caller's own in the context."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Text, Field(min_length=1, max_length=100)] = Field(
        description="Its name; not one of the service's own."
    )
    text: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] = Field(description="What the model reads.")
    role: Literal["system", "user", "assistant"] = Field("system", description="Who says it, with `in_chat`.")
    after: Annotated[Text, Field(min_length=1, max_length=100)] = Field(
        "instruction", description="The segment it follows, or `in_chat`."
    )
    depth: Annotated[int, Field(ge=0, le=1_000)] = Field(0, description="With `in_chat`: messages back from the end.")

    @model_validator(mode="after")
    def _own_name(self) -> Self:
        order = in_use().tables.order
        if self.name in order:
            raise FieldError(("name",), "is one of the service's own segments")
        if self.after not in ("in_chat", *order):
            raise FieldError(("after",), f"must be in_chat or one of {', '.join(order)}")
        return self


class ContextQuery(BaseModel):
    """How a context is to be assembled."""

    model_config = ConfigDict(extra="forbid")

    format: Format = Field("segments", description="`openai` and `anthropic` are ready to send.")
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = Field(
        None,
        description="A promise: the context never counts more. The chat's `context_tokens` if not given.",
    )
    query: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] | None = Field(
        None, description="What recall looks for; no layer that recalls is built yet."
    )
    recall: Literal["off", "auto"] | None = Field(None, description="Overrides the chat's setting.")
    recall_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = Field(None, description="The most for recall.")
    character: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="Whose diary and blocks: one of the chat's characters, if it names any. "
        "If not given, its only one that is not disabled; with several there is no diary in the context then.",
    )
    line: UUID | None = Field(None, description="Another line than the current one.")
    draft: Content | None = Field(
        None,
        description="A user message, assembled as if just appended; it is not stored and moves no anchor.",
    )
    prefill: bool = Field(False, description="anthropic: let the conversation end with the assistant, to be continued.")
    now: Moment | None = Field(None, description="The time for the segment `time`.")


class ContextOptions(ContextQuery):
    """How a context is to be assembled, with the caller's own segments."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "format": "openai",
                    "max_tokens": 4000,
                    "draft": "Do you still have the brass key?",
                    "segments": [{"name": "lore", "text": "The lighthouse has 112 steps.", "after": "user"}],
                }
            ]
        },
    )

    segments: Annotated[list[OwnSegment], Field(max_length=50)] = Field([], description="The caller's own segments.")

    @model_validator(mode="after")
    def _unique_segments(self) -> Self:
        names = [segment.name for segment in self.segments]
        if len(names) != len(set(names)):
            raise FieldError(("segments",), "two have the same name")
        return self


class AppendIn(BaseModel):
    """Messages to append, and whether to answer with a context."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "messages": [
                        {
                            "id": "m1",
                            "role": "user",
                            "name": "Mira",
                            "content": "I found your letter in the lamp room.",
                        },
                        {
                            "id": "m2",
                            "role": "assistant",
                            "name": "Kai",
                            "content": "Then you know why I stayed.",
                        },
                    ],
                    "context": {"format": "openai", "max_tokens": 4000},
                }
            ]
        },
    )

    messages: Annotated[list[MessageIn], Field(min_length=1, max_length=MAX_MESSAGES)] = Field(
        description="1–1,000 messages in the order of the conversation."
    )
    context: ContextOptions | None = Field(None, description="Answer with the context after the append, too.")

    @model_validator(mode="after")
    def _unique_ids(self) -> Self:
        refuse_twins(self.messages)
        return self


class SegmentOut(BaseModel):
    """A part of the context."""

    name: str = Field(description="Its name.")
    role: str | None = Field(description="Who says it; null for the history, where many speak.")
    text: str = Field(description="What the model reads.")
    tokens: int = Field(description="Its tokens.")
    cacheable: bool = Field(description="False for what changes every turn.")
    sources: list[str] = Field(description="What it was made of: `memo:…`, `message:…`, `summary:3`.")
    depth: int | None = Field(None, description="Only of what stands among the messages: how many are behind it.")
    scan: bool | None = Field(None, description="Only where it is set: whether a lorebook should look through it.")


class LastCut(BaseModel):
    """The last cut of the history."""

    at_seq: int = Field(description="Where the history begins since.")
    reason: Literal["full", "cold", "forced", "session", "rewind"] = Field(description="Why it was cut.")
    at: datetime = Field(description="When.")


class HistoryOut(BaseModel):
    """What is sent verbatim."""

    anchor_seq: int = Field(description="The first seq that is sent.")
    last_seq: int = Field(description="The last seq that is sent.")
    messages: int = Field(description="How many, the newest included.")
    last_cut: LastCut | None = Field(description="The last cut.")


class WindowOut(BaseModel):
    """The memos in the context."""

    memos: int = Field(description="How many.")
    first_seq: int | None = Field(description="The first message they cover.")
    last_seq: int | None = Field(description="The last message they cover.")
    gaps: list[tuple[int, int]] = Field(
        description="Ranges that are not sent and whose memo, fold or recap is missing."
    )


class BreakpointOut(BaseModel):
    """Where the provider's cache should hold."""

    after: str = Field(description="`segment:<name>` or `message:<id>`.")
    tokens: int = Field(description="Tokens up to there.")
    hash: str = Field(description="sha-256 of the rendered bytes up to there.")


class OmissionOut(BaseModel):
    """Something that was left out."""

    name: str = Field(description="What.")
    why: str = Field(description="`max_tokens`, `budget` or `blank`.")
    tokens: int = Field(description="Its tokens.")


class ContextOut(BaseModel):
    """The context of the next model call."""

    chat_id: str = Field(description="The chat.")
    line: UUID = Field(description="The line.")
    format: Format = Field(description="The format.")
    tokens: int = Field(description="Text plus 4 a message, times `token_factor`.")
    max_tokens: int = Field(description="What it had to fit into.")
    segments: list[SegmentOut] = Field(description="Its parts, in order.")
    messages: list[dict[str, Any]] | None = Field(None, description="openai and anthropic: ready to send.")
    system: list[dict[str, Any]] | None = Field(None, description="anthropic: text blocks with cache_control.")
    text: str | None = Field(None, description="text: all of it.")
    history: HistoryOut = Field(description="What is sent verbatim.")
    memo_window: WindowOut = Field(description="The memos in it.")
    breakpoints: list[BreakpointOut] = Field(description="At most four.")
    omitted: list[OmissionOut] = Field(description="What was left out, in the order of leaving.")
    recalled: list[dict[str, Any]] = Field(description="Search results in it; none yet.")
    prefix_hash: str = Field(description="Equal hashes mean that nothing before the history changed.")


class AppendOut(BaseModel):
    """What an append did."""

    messages: list[AppendedOut] = Field(description="All messages in the request's order.")
    created: int = Field(description="How many of them are new.")
    context: ContextOut | None = Field(None, description="The context, if it was asked for and fits.")
    context_problem: dict[str, Any] | None = Field(None, description="Why there is no context; the append stands.")


class InclusionOut(BaseModel):
    """What stands for a message in the context."""

    seq: int = Field(description="Its place on the line.")
    message_id: str = Field(description="Its id.")
    status: str = Field(
        description="`verbatim`, `pinned`, or what covers it, by a word of its layer such as `memo` or `summary`; else "
        "why it is not in the context: `out_of_budget`, `pending`, `failed`, `expired`, `excluded`, `hidden`, `none`."
    )
    by: str | None = Field(description="What stands for it, such as `memo:…` or `summary:3`.")
