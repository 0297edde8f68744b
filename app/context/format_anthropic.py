"""The `anthropic` format: system blocks before the history, then alternating user and assistant messages. Pure.

The format has neither other roles nor a field for names, so both are written into the text. Every block of the context
is a content block of its own, so that it can have `cache_control`. Trailing white space is removed from all assistant
texts, because the API rejects a prefill that ends with white space. It is removed from earlier messages too, so that a
message does not change when the next one is appended. If it changed, the provider would not find the prompt in its
cache.
"""

from collections.abc import Container, Sequence
from typing import Any

from app.chats.prompt_cache import CacheChoice
from app.context.blocks import Block, Part, count_text
from app.context.segments import HistoryMessage, RenderOptions, Segment
from app.context.wording import word_message, word_segment

OPENING = "[The conversation so far]"
"""The user text inserted before a conversation that begins with the assistant."""

CLOSING = "[Continue]"
"""The user text appended to a conversation that ends with the assistant. Not used with `prefill`."""


def render_segment(segment: Segment, part: Part) -> tuple[str, str]:
    """Return the role and the text of a segment. A role that is not possible in this part is written before the text.

    There is one exception: after the history, the role `system` is not possible, but it is not written either.
    """
    if part == "prefix":
        return "system", word_segment(segment, "system")
    if part == "volatile":
        return "user", word_segment(segment, "system", "user")
    if segment.role == "assistant":
        return "assistant", segment.text.rstrip()
    return "user", word_segment(segment, "user")


def render_message(entry: HistoryMessage, part: Part, render_options: RenderOptions) -> Block:
    """Return the block of a message."""
    text = word_message(entry, render_options.style)
    role = "assistant" if entry.role == "assistant" else "user"
    if role == "assistant":
        text = text.rstrip()
    return Block(entry, part, role, text, count_text(entry, text, render_options.count))


def complete(talk: list[Block], render_options: RenderOptions) -> list[Block]:
    """Return the conversation so that it begins with the user and, without `prefill`, ends with the user.

    `talk` has the volatile segments, the ones after the history, in their places. If the conversation ends with a
    prefill, they are moved before the last block of the user.
    """
    said = [block for block in talk if block.part != "volatile"]
    if not said or said[-1].role != "assistant":
        return _open(talk, render_options)
    if not render_options.prefill:
        return [*_open(talk, render_options), _fixed(CLOSING, render_options)]
    said = _open(said, render_options)
    last = max(index for index, block in enumerate(said) if block.role == "user")
    return [*said[:last], *(block for block in talk if block.part == "volatile"), *said[last:]]


def assemble(
    blocks: Sequence[Block], breaks: Container[int], cache: CacheChoice
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the system blocks and the messages, with `cache_control` on the blocks whose indexes are in `breaks`."""
    control = {"type": "ephemeral"} | ({"ttl": "1h"} if cache == "1h" else {})  # without a `ttl`, it is five minutes
    system: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        content_block: dict[str, Any] = {"type": "text", "text": block.text}
        if index in breaks:
            content_block["cache_control"] = control
        if block.part == "prefix":
            system.append(content_block)
        elif messages and messages[-1]["role"] == block.role:
            messages[-1]["content"].append(content_block)
        else:
            messages.append({"role": block.role, "content": [content_block]})
    return system, messages


def _open(talk: list[Block], render_options: RenderOptions) -> list[Block]:
    return [_fixed(OPENING, render_options), *talk] if talk and talk[0].role == "assistant" else talk


def _fixed(text: str, render_options: RenderOptions) -> Block:
    return Block(None, "fixed", "user", text, render_options.count(text))
