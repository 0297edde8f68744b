"""The parts of a context before they are rendered in a format. Pure.

Segments that rarely change come before the history, those that change every turn come after it, and the newest user
message is last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from app.chats.prompt_cache import CacheChoice
from app.context.tables import BASE, SegmentTables

Format = Literal["segments", "openai", "anthropic", "text"]
SegmentRole = Literal["system", "user", "assistant"]


UNREAD = "…"
"""The text of a message that cannot fit the context and is therefore not read; recognised by its identity."""


class HistoryMessage(NamedTuple):
    """One message of the history (or the newest one). It is a tuple because a context reads dozens of them.

    Attributes:
        seq: Its seq on the line; a draft has the seq after the head.
        message_id: The caller's id.
        role: user, assistant, system, tool or narrator.
        name: The speaker, if the message has a name.
        text: The content, unchanged, which may be blank; `UNREAD` if it was not read.
        tokens: o200k tokens of the content, even if it was not read; of all messages that it represents, together.
        sent_at: When it was sent, as RFC 3339; only inline timestamps and recall (`find_hour`) use it.
        tool_calls: The tool calls as appended (in OpenAI's shape), if any.
        tool_call_id: The id of the call whose result this message is.
        unanswered: Whether it made tool calls that were all dropped, because none has a result.
        joined: The seqs of the messages that it represents, its own among them, ascending; () if it represents only
            itself. Only messages of the same speaker that were not read are joined.

    """

    seq: int
    message_id: str
    role: str
    name: str | None
    text: str
    tokens: int
    sent_at: str
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    unanswered: bool = False
    joined: tuple[int, ...] = ()

    @property
    def seqs(self) -> tuple[int, ...]:
        """The seqs of the messages that it represents, ascending."""
        return self.joined or (self.seq,)


class Segment(NamedTuple):
    """A named text of the context with its token count.

    Attributes:
        name: The name of one of the service's segments, or of one of the caller's own.
        text: The text that the model reads.
        tokens: o200k tokens of `text`, without the overhead of a message.
        role: Its role, if the format allows a segment to have one.
        sources: What it was made from: `memo:…`, `message:…`, `summary:3`.
        cacheable: Whether it stays the same in the next turn.
        after: Its position: None for its own position in the order of segments, the name of the segment that it
            follows, `in_chat` for a position among the messages, or `before_prompt` for before everything.
        depth: With `in_chat`: how many messages follow it.
        scan: Whether the caller's lorebook should scan it; None if that is not set.

    """

    name: str
    text: str
    tokens: int
    role: SegmentRole = "system"
    sources: tuple[str, ...] = ()
    cacheable: bool = True
    after: str | None = None
    depth: int = 0
    scan: bool | None = None


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The arranged parts of a context.

    Attributes:
        prefix: Segments before the history, in order.
        history: The messages sent verbatim, oldest first, without `newest`.
        in_chat: Segments among the messages.
        volatile: Segments after the history.
        newest: The last message if it is the user's.
        anchor_seq: The chat's anchor, where the history begins.

    """

    prefix: Sequence[Segment] = ()
    history: Sequence[HistoryMessage] = ()
    in_chat: Sequence[Segment] = ()
    volatile: Sequence[Segment] = ()
    newest: HistoryMessage | None = None
    anchor_seq: int = 1


@dataclass(frozen=True, slots=True)
class TranscriptStyle:
    """How to render the chat's messages.

    Attributes:
        timestamps: With `inline`, the text of a message begins with its time and its speaker, such as
            `[MM/DD HH:MM] Name: `. The text of a tool result in the role `tool` of `openai` begins with neither.
        time_zone: IANA name of the chat's time zone.
        character: The chat's only active character; None if there are none or several. In formats with roles, its name
            is left out before its own messages, unless `timestamps` is `inline`.
        user_name: The speaker of user messages without a name; by default `User`.

    """

    timestamps: Literal["off", "inline"] = "off"
    time_zone: str = "UTC"
    character: str | None = None
    user_name: str | None = None


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """The options for rendering a context.

    Attributes:
        format: The format of the result.
        style: How to render the messages.
        prefill: With `anthropic`: whether the conversation may end with the assistant, for the model to continue.
        token_factor: The factor by which o200k counts are multiplied before they are compared with `max_tokens`.
        count: Returns the o200k tokens of a text.
        tables: The order of segments and the order of trimming.
        cache: How long the provider should keep the prompt; it changes no text.

    """

    format: Format
    style: TranscriptStyle
    prefill: bool
    token_factor: float
    count: Callable[[str], int]
    tables: SegmentTables = BASE
    cache: CacheChoice = "5m"


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A point up to which a provider should cache the prompt.

    Attributes:
        after: What it follows: `segment:<name>` or `message:<id>`.
        tokens: The tokens of everything up to it, with the overhead of messages, times the token factor.
        hash: sha-256 (hex) of everything rendered up to it.

    """

    after: str
    tokens: int
    hash: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A context in one format.

    Attributes:
        tokens: The tokens of all texts, plus 4 per block, times the chat's token factor, rounded up.
        breakpoints: The points up to which the provider should cache the prompt.
        prefix_hash: sha-256 (hex) of the format, the seq of the first message sent and everything before the history.
        messages: With `openai` and `anthropic`: the messages, ready to send.
        system: With `anthropic`: the system text blocks.
        text: With `text`: the whole context.
        segments: The list of segments, which every format includes.

    """

    tokens: int
    breakpoints: Sequence[Breakpoint]
    prefix_hash: str
    messages: list[dict[str, Any]] | None = None
    system: list[dict[str, Any]] | None = None
    text: str | None = None
    segments: list[dict[str, Any]] = field(default_factory=list)
