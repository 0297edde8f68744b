"""Renders a plan in a format: texts are rendered, put in order and wrapped in the format. Pure.

`word` does the expensive part once. `lay_out` and `count_tokens_of` only order and add up, so a budget can try many
shorter contexts, and its count is exactly that of `render`.
"""

from collections.abc import Callable, Mapping, Sequence

from app.context import format_anthropic, format_openai, format_segments, format_text
from app.context.blocks import Part, Piece, Worded, add_up, charge, count_text
from app.context.breakpoints import count_stable, place, seal
from app.context.calls import find_native, inner_positions, name_results
from app.context.segments import Entry, Format, Manner, Plan, Rendered, Segment
from app.context.wording import is_blank

_SAY: Mapping[Format, Callable[[Entry, Part, Manner], Piece]] = {
    "segments": format_segments.say,
    "openai": format_openai.say,
    "anthropic": format_anthropic.say,
    "text": format_text.say,
}
_PUT: Mapping[Format, Callable[[Segment, Part], tuple[str, str]]] = {
    "anthropic": format_anthropic.put,
    "text": format_text.put,
}


def word(plan: Plan, manner: Manner) -> Worded:
    """Render every text of `plan` in the format and count its tokens. Blank texts are left out."""
    newest = plan.newest if plan.newest and is_said(plan.newest) else None
    return Worded(
        manner=manner,
        prefix=_word_segments(plan.prefix, "prefix", manner),
        history=_word_history(plan.history, manner),
        in_chat=_word_segments(plan.in_chat, "in_chat", manner),
        volatile=_word_segments(plan.volatile, "volatile", manner),
        newest=_SAY[manner.format](newest, "newest", manner) if newest else None,
        cut_seq=plan.anchor_seq,
    )


def word_segment(segment: Segment, part: Part, manner: Manner) -> Piece:
    """Return the piece of one segment."""
    put = _PUT.get(manner.format)
    role, text = put(segment, part) if put else (segment.role, segment.text)
    tokens = count_text(segment, text, manner.count)
    return Piece(segment, part, role, text, tokens, segment.cacheable and part != "volatile")


def is_said(entry: Entry) -> bool:
    """Return whether a message has text or a tool call."""
    return not is_blank(entry.text) or bool(entry.tool_calls)


def lay_out(worded: Worded) -> list[Piece]:
    """Return all pieces in the order of the prompt, with the fixed texts that the format needs.

    An in-chat segment at depth d is followed by d messages, or by all of them if there are fewer. It is never placed
    between a tool call and its result, but before the call. It is stable only before the first message, because
    elsewhere it moves with every new message.
    """
    newest = [worded.newest] if worded.newest else []
    talk = _spread(worded) if worded.in_chat else [*worded.history, *worded.volatile, *newest]
    if worded.manner.format == "anthropic":
        talk = format_anthropic.complete(talk, worded.manner)
    return [*worded.prefix, *talk]


def count_tokens_of(worded: Worded) -> int:
    """Return the tokens that `render` counts: text plus 4 per message, times the token factor, rounded up."""
    return charge(add_up(lay_out(worded)), worded.manner.token_factor)


def render(worded: Worded) -> Rendered:
    """Return the context in its format, with breakpoints, hashes and the list of segments."""
    manner = worded.manner
    pieces = lay_out(worded)
    stable = count_stable(pieces)
    marked = place(pieces, stable, manner.tables)
    breakpoints, prefix_hash = seal(worded, pieces, marked)
    system = messages = text = None
    if manner.format == "openai":
        messages = format_openai.lay(pieces)
    elif manner.format == "anthropic":
        system, messages = format_anthropic.lay(pieces, marked)
    elif manner.format == "text":
        text = format_text.lay(pieces)
    return Rendered(
        tokens=charge(add_up(pieces), manner.token_factor),
        breakpoints=breakpoints,
        prefix_hash=prefix_hash,
        messages=messages,
        system=system,
        text=text,
        segments=format_segments.list_segments(pieces, stable, manner.speech),
    )


def _word_segments(segments: Sequence[Segment], part: Part, manner: Manner) -> list[Piece]:
    return [word_segment(one, part, manner) for one in segments if not is_blank(one.text)]


def _word_history(history: Sequence[Entry], manner: Manner) -> list[Piece]:
    entries = name_results([entry for entry in history if is_said(entry)])
    say = _SAY[manner.format]
    native = find_native(entries) if manner.format == "openai" else set()
    return [
        (format_openai.say_native if index in native else say)(entry, "history", manner)
        for index, entry in enumerate(entries)
    ]


def _spread(worded: Worded) -> list[Piece]:
    """Return the messages and the volatile segments, with the in-chat segments between them."""
    messages = [*worded.history, worded.newest] if worded.newest else worded.history
    slots = _slots(worded, len(messages))
    talk: list[Piece] = []
    for position, piece in enumerate(messages):
        talk += slots.get(position, ())
        if piece is worded.newest:
            talk += worded.volatile
        talk.append(piece)
    talk += slots.get(len(messages), ())
    if not worded.newest:
        talk += worded.volatile
    return talk


def _slots(worded: Worded, messages: int) -> dict[int, list[Piece]]:
    inner = inner_positions(worded.entries)
    slots: dict[int, list[Piece]] = {}
    for piece in worded.in_chat:
        depth = piece.of.depth if isinstance(piece.of, Segment) else 0
        position = max(0, messages - depth)
        while position in inner:
            position -= 1
        slots.setdefault(position, []).append(piece._replace(stable=piece.stable and depth >= messages))
    return slots
