"""The parts of a context before they are put into a format. Pure.

A context is a row of segments, the rarely changing first, around the history; what changes every turn
stands after it, and the newest user message is last.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from app.context.tables import BASE, SegmentTables

Format = Literal["segments", "openai", "anthropic", "text"]
SegmentRole = Literal["system", "user", "assistant"]


class Entry(NamedTuple):
    """One message of the history (or the newest one), as it is to be sent. A tuple, because a context reads dozens.

    Attributes:
        seq: Its place on the line; a draft's is one past the head.
        message_id: The caller's id.
        role: user, assistant, system, tool or narrator.
        name: Who speaks, if it was said.
        text: The content, unchanged; may be empty when `tool_calls` is set.
        tokens: o200k tokens of `text`.
        sent_at: When it was said, RFC 3339; only inline timestamps read it.
        tool_calls: As appended (OpenAI's shape), if any.
        tool_call_id: The call this is the result of.

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


class Segment(NamedTuple):
    """A named, counted text of the context. Tuples, as messages are: a context makes several.

    Attributes:
        name: The name of a segment of the service, or of the caller's own.
        text: What the model reads.
        tokens: o200k tokens of `text`, without the overhead of a message.
        role: Who says it, where the format lets a segment have a role of its own.
        sources: What it was made of: `memo:…`, `message:…`, `summary:3`.
        cacheable: False for what changes every turn.
        after: Where it goes if not to its own position in the order of segments: behind the segment of this name,
            `in_chat` among the messages, or `before_prompt` ahead of everything.
        depth: With `in_chat`: how many messages back from the end it stands.
        scan: Whether the caller's lorebook should look through it; None where that is not said.

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
class Plan:
    """Everything that may go into a context, in order.

    Attributes:
        prefix: Segments before the history, in order.
        history: The messages sent verbatim, oldest first, without `newest`.
        in_chat: Segments that stand among the messages.
        volatile: Segments after the history.
        newest: The last message if it is the user's.
        anchor_seq: Where the history begins by the last cut; counts only while no message is sent.

    """

    prefix: Sequence[Segment] = ()
    history: Sequence[Entry] = ()
    in_chat: Sequence[Segment] = ()
    volatile: Sequence[Segment] = ()
    newest: Entry | None = None
    anchor_seq: int = 1


@dataclass(frozen=True, slots=True)
class Speech:
    """How the chat's messages are to be worded.

    Attributes:
        timestamps: `inline` puts `[MM/DD HH:MM] Name: ` before every text.
        time_zone: IANA name of the chat's zone.
        character: The chat's only character; its name is not repeated before its own messages.
        user_name: Who a nameless user message is from (inline timestamps), else `User`.

    """

    timestamps: Literal["off", "inline"] = "off"
    time_zone: str = "UTC"
    character: str | None = None
    user_name: str | None = None


@dataclass(frozen=True, slots=True)
class Manner:
    """How a context is to be put: the format, the chat's wording, and what a token counts.

    Attributes:
        format: What the caller will send, or read.
        speech: How the messages are worded.
        prefill: anthropic: a conversation that ends with the assistant stays so, to be continued.
        token_factor: Multiplies o200k counts where they are held against `max_tokens`.
        count: The o200k tokens of a text.
        tables: The order of segments, and that of trimming.

    """

    format: Format
    speech: Speech
    prefill: bool
    token_factor: float
    count: Callable[[str], int]
    tables: SegmentTables = BASE


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A place up to which a provider should keep the prompt.

    Attributes:
        after: `segment:<name>` or `message:<id>`.
        tokens: Everything up to there, with the overhead of messages.
        hash: sha-256 (hex) of the rendered bytes up to there.

    """

    after: str
    tokens: int
    hash: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A context in one format.

    Attributes:
        tokens: Text plus 4 a message, times the chat's token factor, rounded up.
        messages: openai and anthropic: ready to send.
        system: anthropic: text blocks.
        text: the text format.
        breakpoints: Where the provider's cache should hold.
        prefix_hash: sha-256 (hex) over format, anchor and everything before the history.

    """

    tokens: int
    breakpoints: Sequence[Breakpoint]
    prefix_hash: str
    messages: list[dict[str, Any]] | None = None
    system: list[dict[str, Any]] | None = None
    text: str | None = None
    segments: list[dict[str, Any]] = field(default_factory=list)
