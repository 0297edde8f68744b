"""Renders an arrangement in a format: texts are rendered, put in order and wrapped in the format. Pure.

`word` renders all texts once, which is the expensive part. `lay_out` and `count_tokens_of` only put blocks in order and
add up their tokens, so `budget.fit` can try many shorter contexts. `render` counts as many tokens as
`count_tokens_of`.
"""

from collections.abc import Callable, Mapping, Sequence

from app.context import format_anthropic, format_openai, format_segments, format_text
from app.context.blocks import Block, BlockLayout, Part, add_up, charge, count_text
from app.context.breakpoints import count_stable, hash_prefixes, place_breakpoints
from app.context.calls import find_native, inner_positions, name_results
from app.context.segments import Arrangement, Format, HistoryMessage, Rendered, RenderOptions, Segment
from app.context.wording import is_blank

_RENDER_MESSAGE: Mapping[Format, Callable[[HistoryMessage, Part, RenderOptions], Block]] = {
    "segments": format_segments.render_message,
    "openai": format_openai.render_message,
    "anthropic": format_anthropic.render_message,
    "text": format_text.render_message,
}
_RENDER_SEGMENT: Mapping[Format, Callable[[Segment, Part], tuple[str, str]]] = {
    "anthropic": format_anthropic.render_segment,
    "text": format_text.render_segment,
}

_MESSAGES_OF_A_TURN = 2
"""The reply that a context is for, and the user's next message."""


def word(arrangement: Arrangement, render_options: RenderOptions) -> BlockLayout:
    """Render every text of `arrangement` in the format and count its tokens. Blank texts are left out."""
    newest = arrangement.newest if arrangement.newest and is_said(arrangement.newest) else None
    return BlockLayout(
        render_options=render_options,
        prefix=_word_segments(arrangement.prefix, "prefix", render_options),
        history=_word_history(arrangement.history, render_options),
        in_chat=_word_segments(arrangement.in_chat, "in_chat", render_options),
        volatile=_word_segments(arrangement.volatile, "volatile", render_options),
        newest=_RENDER_MESSAGE[render_options.format](newest, "newest", render_options) if newest else None,
        anchor_seq=arrangement.anchor_seq,
    )


def word_segment(segment: Segment, part: Part, render_options: RenderOptions) -> Block:
    """Return the block of one segment."""
    render_segment = _RENDER_SEGMENT.get(render_options.format)
    role, text = render_segment(segment, part) if render_segment else (segment.role, segment.text)
    tokens = count_text(segment, text, render_options.count)
    return Block(segment, part, role, text, tokens, segment.cacheable and part != "volatile")


def is_said(entry: HistoryMessage) -> bool:
    """Return whether a message has text or a tool call."""
    return not is_blank(entry.text) or bool(entry.tool_calls)


def lay_out(layout: BlockLayout) -> list[Block]:
    """Return all blocks in the order of the prompt, with the fixed texts that the format needs.

    An in-chat segment at depth d is followed by d messages, or by all messages if there are fewer. It is never placed
    between a tool call and its result, but before the call. As long as there are at most d messages, it is before the
    first one; after that, it moves with every new message. So it counts as stable only if it is still before the first
    message in the next turn.
    """
    newest = [layout.newest] if layout.newest else []
    talk = _spread(layout) if layout.in_chat else [*layout.history, *layout.volatile, *newest]
    if layout.render_options.format == "anthropic":
        talk = format_anthropic.complete(talk, layout.render_options)
    return [*layout.prefix, *talk]


def count_tokens_of(layout: BlockLayout) -> int:
    """Return the tokens that `render` counts: text plus 4 per block, times the token factor, rounded up."""
    return charge(add_up(lay_out(layout)), layout.render_options.token_factor)


def render(layout: BlockLayout) -> Rendered:
    """Return the context in its format, with breakpoints, hashes and the list of segments."""
    render_options = layout.render_options
    blocks = lay_out(layout)
    stable = count_stable(blocks)
    marked = [] if render_options.cache == "off" else place_breakpoints(blocks, stable, render_options.tables)
    breakpoints, prefix_hash = hash_prefixes(layout, blocks, marked)
    system = messages = text = None
    if render_options.format == "openai":
        messages = format_openai.assemble(blocks)
    elif render_options.format == "anthropic":
        system, messages = format_anthropic.assemble(blocks, marked, render_options.cache)
    elif render_options.format == "text":
        text = format_text.assemble(blocks)
    return Rendered(
        tokens=charge(add_up(blocks), render_options.token_factor),
        breakpoints=breakpoints,
        prefix_hash=prefix_hash,
        messages=messages,
        system=system,
        text=text,
        segments=format_segments.list_segments(blocks, stable, render_options.style),
    )


def _word_segments(segments: Sequence[Segment], part: Part, render_options: RenderOptions) -> list[Block]:
    return [word_segment(one, part, render_options) for one in segments if not is_blank(one.text)]


def _word_history(history: Sequence[HistoryMessage], render_options: RenderOptions) -> list[Block]:
    entries = name_results([entry for entry in history if is_said(entry)])
    render_message = _RENDER_MESSAGE[render_options.format]
    native = find_native(entries) if render_options.format == "openai" else set()
    return [
        (format_openai.render_native if index in native else render_message)(entry, "history", render_options)
        for index, entry in enumerate(entries)
    ]


def _spread(layout: BlockLayout) -> list[Block]:
    """Return the messages and the volatile segments, with the in-chat segments between them."""
    messages = [*layout.history, layout.newest] if layout.newest else layout.history
    slots = _slots(layout, len(messages))
    talk: list[Block] = []
    for position, block in enumerate(messages):
        talk += slots.get(position, ())
        if block is layout.newest:
            talk += layout.volatile
        talk.append(block)
    talk += slots.get(len(messages), ())
    if not layout.newest:
        talk += layout.volatile
    return talk


def _slots(layout: BlockLayout, messages: int) -> dict[int, list[Block]]:
    inner = inner_positions(layout.entries)
    slots: dict[int, list[Block]] = {}
    for block in layout.in_chat:
        depth = block.of.depth if isinstance(block.of, Segment) else 0
        position = max(0, messages - depth)
        while position in inner:
            position -= 1
        is_first_next_turn = depth >= messages + _MESSAGES_OF_A_TURN
        slots.setdefault(position, []).append(block._replace(stable=block.stable and is_first_next_turn))
    return slots
