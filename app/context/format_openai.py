"""The `openai` format: messages for any OpenAI-compatible chat completion. Pure.

Adjacent system segments are joined into one message, because many chat templates accept only one system message, at
the beginning. A provider that caches by token prefix is not affected. The format has no role for a narrator. A
narrator's message becomes a user message `[Narrator] …`, because many templates would refuse another system message.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from app.context.blocks import Block, Part, count_text
from app.context.segments import HistoryMessage, RenderOptions, Segment
from app.context.wording import given_name, is_blank, word_message

_NAME_FIELD = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SPEAKERS = frozenset({"user", "assistant", "system"})


def render_message(entry: HistoryMessage, part: Part, render_options: RenderOptions) -> Block:
    """Return the block of a message that is sent as text.

    The speaker is in the field `name` if the format accepts the name and the text needs no other addition. Otherwise
    the field is empty, and the text is that of `word_message`.
    """
    role = entry.role if entry.role in _SPEAKERS else "user"
    name = given_name(entry)
    refused = name and not _NAME_FIELD.fullmatch(name)
    if refused or role != entry.role or entry.tool_calls or render_options.style.timestamps == "inline":
        text = word_message(entry, render_options.style)
        return Block(entry, part, role, text, count_text(entry, text, render_options.count))
    return Block(entry, part, role, entry.text, entry.tokens, True, name or None)


def render_native(entry: HistoryMessage, part: Part, render_options: RenderOptions) -> Block:
    """Return the block of a tool call or a tool result, in the format's own fields.

    A result is data: neither a name nor a time is added to its text.
    """
    if entry.role == "tool":
        return Block(entry, part, "tool", entry.text, entry.tokens, tool_call_id=entry.tool_call_id)
    text, tokens = ("", 0) if is_blank(entry.text) else (entry.text, entry.tokens)
    said = render_message(entry._replace(text=text, tokens=tokens, tool_calls=None), part, render_options)
    calls = render_options.count(json.dumps(entry.tool_calls, ensure_ascii=False))
    return said._replace(of=entry, tokens=said.tokens + calls, tool_calls=entry.tool_calls)


def assemble(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return the messages, ready to send."""
    messages: list[dict[str, Any]] = []
    joinable = False
    for block in blocks:
        of_system = block.role == "system" and isinstance(block.of, Segment)
        if of_system and joinable:
            messages[-1]["content"] += f"\n\n{block.text}"
        else:
            messages.append(_message(block))
        joinable = of_system
    return messages


def _message(block: Block) -> dict[str, Any]:
    message: dict[str, Any] = {"role": block.role, "content": block.text}
    if block.name:
        message["name"] = block.name
    if block.tool_calls:
        message["content"] = block.text or None
        message["tool_calls"] = block.tool_calls
    if block.tool_call_id is not None:
        message["tool_call_id"] = block.tool_call_id
    return message
