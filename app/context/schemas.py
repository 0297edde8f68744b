"""Request and response models of contexts."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.context.in_use import in_use
from app.context.segments import Format
from app.kit.validation_errors import FieldError
from app.kit.wire import MAX_CONTENT_CHARS, Text, UtcDatetime
from app.messages.schemas import MAX_MESSAGES, AppendedOut, MessageIn, refuse_twins

MAX_TOKENS = 10_000_000

Content = Annotated[Text, Field(min_length=1, max_length=MAX_CONTENT_CHARS)]


class OwnSegment(BaseModel):
    """A segment of the caller's own."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[Text, Field(min_length=1, max_length=100)] = Field(
        description="Its name; it must not be that of a segment of the service."
    )
    text: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] = Field(description="The text that the model reads.")
    role: Literal["system", "user", "assistant"] = Field(
        "system",
        description="Its role. If the format does not allow the role at this position, the text begins with the role, "
        "such as `[System]` among the messages of `anthropic`.",
    )
    after: Annotated[Text, Field(min_length=1, max_length=100)] = Field(
        "instruction", description="The segment that it follows, or `in_chat` for a position among the messages."
    )
    depth: Annotated[int, Field(ge=0, le=1_000)] = Field(0, description="With `in_chat`: how many messages follow it.")

    @model_validator(mode="after")
    def _own_name(self) -> Self:
        order = in_use().tables.order
        if self.name in order:
            raise FieldError(("name",), "must not be the name of one of the service's own segments")
        if self.after not in ("in_chat", *order):
            raise FieldError(("after",), f"must be in_chat or one of {', '.join(order)}")
        return self


class ContextQuery(BaseModel):
    """How to assemble a context."""

    model_config = ConfigDict(extra="forbid")

    format: Format = Field(
        "segments",
        description="All formats list the segments. `openai` and `anthropic` add messages that are ready to send, "
        "`text` adds one text.",
    )
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = Field(
        None,
        description="The limit of the context's `tokens`; by default the chat's `context_tokens`.",
    )
    query: Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)] | None = Field(
        None,
        description="The text to search for (see `recall`); by default the newest message, with earlier ones if it is "
        "short. If the context would exceed `max_tokens`, the search results are the first to be left out. But if "
        "you send a `query`, the segments `time`, `diary` and `memos` are left out before the results.",
    )
    recall: Literal["off", "auto"] | None = Field(
        None,
        description="Overrides the chat's `recall.mode`. With `auto`, the service searches, and the segment "
        "`recalled` contains the results: memories, memos, diary entries, recaps of scenes, and messages that have "
        "left the history.",
    )
    recall_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = Field(
        None, description="The limit of the segment `recalled` in o200k tokens; by default the chat's `recall.tokens`."
    )
    character: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None,
        description="The character that speaks next; if the chat lists characters, one of these. The context contains "
        "only this character's diary, and its part of the scope `character`. The default is the chat's only character "
        "that is not disabled. If there are several, a context without `character` has no diary, and nothing of this "
        "scope.",
    )
    line: UUID | None = Field(None, description="A line other than the current one.")
    draft: Content | None = Field(
        None,
        description="A user's message to add as the newest one. It is not stored, and does not cut the history.",
    )
    before: Annotated[Text, Field(min_length=1, max_length=128)] | None = Field(
        None,
        description="The id of a message of the history. The context is then made for generating this message again: "
        "it contains neither this message nor later ones, nor what was learnt from them in this chat. What a person "
        "wrote into facts, blocks, memories or the summary, and what other chats share, is as it is now.",
    )
    prefill: bool = Field(
        False,
        description="With `anthropic`: let the conversation end with the assistant, for the model to continue.",
    )
    now: UtcDatetime | None = Field(
        None, description="The time for the segment `time` and the draft; by default the current time."
    )

    @model_validator(mode="after")
    def _draft_or_before(self) -> Self:
        if self.draft is not None and self.before is not None:
            raise FieldError(("draft",), "must not be combined with before")
        return self


class ContextOptions(ContextQuery):
    """How to assemble a context, with the caller's own segments."""

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
            raise FieldError(("segments",), "must have unique names")
        return self


class AppendIn(BaseModel):
    """Messages to append, and options for a context to return."""

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
        description="The messages, in the order of the conversation."
    )
    context: ContextOptions | None = Field(None, description="If given, the answer has the context after the append.")

    @model_validator(mode="after")
    def _unique_ids(self) -> Self:
        refuse_twins(self.messages)
        return self


class SegmentOut(BaseModel):
    """A part of the context."""

    name: str = Field(description="Its name.")
    role: str | None = Field(description="Its role; null for the history.")
    text: str = Field(description="The text that the model reads; for the history, a transcript.")
    tokens: int = Field(description="The o200k tokens of its text in this format.")
    cacheable: bool = Field(
        description="Whether the segment and everything before it stay the same in the next turn. For the segment "
        "`history`, whether its first message stays the same."
    )
    sources: list[str] = Field(description="What it was made from: `memo:…`, `message:…`, `summary:3`.")
    depth: int | None = Field(None, description="Only for a segment among the messages: how many messages follow it.")
    scan: bool | None = Field(None, description="The segment's setting `scan`; missing if it is not set.")


class LastCut(BaseModel):
    """The last cut of the history."""

    at_seq: int = Field(description="The seq at which the history began afterwards.")
    reason: Literal["full", "cold", "forced", "session", "rewind"] = Field(
        description="`full`: there were more than `keep_messages` + `grow_messages` messages. `cold`: the provider's "
        "cache had expired. `forced`: there were `max_messages` messages or more, and no cut for the reason `full` was "
        "possible yet. `session`: a session ended. `rewind`: messages were deleted or hidden, and too few were left, "
        "so the beginning moved back."
    )
    at: datetime = Field(description="When it was made.")


class HistoryOut(BaseModel):
    """The messages that are sent verbatim."""

    anchor_seq: int = Field(description="The first seq that is sent.")
    last_seq: int = Field(description="The last seq that is sent.")
    messages: int = Field(description="The number of messages, including the newest.")
    last_cut: LastCut | None = Field(description="The last cut.")


class WindowOut(BaseModel):
    """The memos in the context."""

    memos: int = Field(description="How many memos the context contains.")
    first_seq: int | None = Field(description="The first seq that these memos cover, or null.")
    last_seq: int | None = Field(description="The last seq that these memos cover, or null.")
    gaps: list[tuple[int, int]] = Field(
        description="Ranges of messages (inclusive) that are not sent, and whose memo, fold or recap is missing or "
        "stale."
    )


class BreakpointOut(BaseModel):
    """A point up to which the provider should cache the prompt."""

    after: str = Field(description="What it follows: `segment:<name>` or `message:<id>`.")
    tokens: int = Field(description="The tokens up to it, counted like `tokens` of the context.")
    hash: str = Field(description="The sha-256 of everything up to it.")


class OmissionOut(BaseModel):
    """Something that was left out."""

    name: str = Field(description="A segment (`history`), a part of one (`memos 1–5`), or a message (`message:<id>`).")
    why: str = Field(
        description="`max_tokens`: the context would be too long with it. `budget`: it exceeds the budget of its "
        "segment. `blank`: it has no text. `unanswered_call`: it only calls tools, and none of its calls has a result "
        "with text. `no_vectors`: recall compared only words, because the embedding model did not answer in time."
    )
    tokens: int = Field(description="The o200k tokens of its text.")


class RecalledOut(BaseModel):
    """A search result in the context, and why it was chosen."""

    kind: str = Field(description="Such as `memory`, `message`, `memo`, `diary` or `scene`.")
    id: str = Field(description="Its id.")
    score: float = Field(description="The sum of `parts`.")
    parts: dict[str, float] = Field(
        description="What the score is made of, as in a search (schema Parts). `vector` is absent if only words were "
        "compared. `fading`, if present, is below 0: what a memory lost because its strength is below 0.5."
    )


class ContextOut(BaseModel):
    """The context of the next model call."""

    chat_id: str = Field(description="The chat's id.")
    line: UUID = Field(description="The line's id.")
    format: Format = Field(description="The format.")
    tokens: int = Field(
        description="The sum of the tokens of all texts and 4 for each segment and message; times `token_factor`, "
        "rounded up."
    )
    max_tokens: int = Field(description="The limit that applied.")
    segments: list[SegmentOut] = Field(description="The segments, in order.")
    messages: list[dict[str, Any]] | None = Field(
        None, description="With `openai` and `anthropic`: the messages to send."
    )
    system: list[dict[str, Any]] | None = Field(
        None, description="With `anthropic`: the system text blocks, with `cache_control`."
    )
    text: str | None = Field(None, description="With `text`: the whole context.")
    history: HistoryOut = Field(description="The messages that are sent verbatim.")
    memo_window: WindowOut = Field(description="The memos in the context.")
    breakpoints: list[BreakpointOut] = Field(
        description="At most four points for the provider's cache; none with `cache: off`."
    )
    omitted: list[OmissionOut] = Field(description="What was left out, in this order.")
    recalled: list[RecalledOut] = Field(description="The search results in the context, in its order.")
    prefix_hash: str = Field(description="Equal hashes mean that nothing before the history changed.")


class AppendOut(BaseModel):
    """The result of an append."""

    messages: list[AppendedOut] = Field(description="All messages in the request's order.")
    created: int = Field(description="How many of the messages are new.")
    context: ContextOut | None = Field(None, description="The context, if it was requested and could be assembled.")
    context_problem: dict[str, Any] | None = Field(
        None, description="Why there is no context. The messages are appended nevertheless."
    )


class InclusionOut(BaseModel):
    """How the context includes a message."""

    seq: int = Field(description="Its seq on the line.")
    message_id: str = Field(description="Its id.")
    status: str = Field(
        description="How the context contains it: `verbatim`, `pinned`, or the kind of memory that covers it, such as "
        "`memo`. Or why it does not: `out_of_budget`, `pending`, `failed`, `expired` (its memo has left the prompt), "
        "`excluded`, `hidden`, or `none` (never summarised, or nothing worth remembering)."
    )
    by: str | None = Field(
        description="What covers the message or will cover it, such as `memo:…`; null if the status is `verbatim` or "
        "`pinned`. If nothing covers the message: a fact or memory that was learnt from it, the memo that found "
        "nothing memorable in it, or null."
    )
