"""Extracts calls of the service's tools that write from the messages of a conversation. Pure.

Frontends store such a call in the form of their model's API: a message of the assistant with `tool_calls` and usually
without text, followed by a message with the tool's result. If the first message has neither text nor other calls, the
demo sends neither of the two messages; it sends the call to the tool's endpoint instead.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

DIARY_TOOL = "save_memory"
FACT_TOOL = "set_fact"
BLOCK_TOOL = "memory_block_update"

_ARGUMENTS = {
    DIARY_TOOL: (frozenset({"content"}), frozenset[str]()),
    FACT_TOOL: (frozenset({"key", "value"}), frozenset[str]()),
    BLOCK_TOOL: (frozenset({"block", "operation", "content"}), frozenset({"search_pattern"})),
}
"""For each tool, the arguments that it needs, and those that it may have."""

Message = dict[str, Any]
"""A message in the form that append accepts."""


class ToolCall(NamedTuple):
    """A call of a tool.

    Attributes:
        character: The character that called the tool, or None if it is unknown.
        arguments: The arguments of the tool.
        tool: The tool's name.

    """

    character: str | None
    arguments: Mapping[str, Any]
    tool: str = DIARY_TOOL


def take_calls(messages: Sequence[Message]) -> list[Message | ToolCall]:
    """Return the conversation in order; a message that only calls these tools is replaced by its calls.

    The results of these calls are left out. A message that has text, or also calls another tool, is left unchanged.
    """
    taken: list[Message | ToolCall] = []
    answered: set[str] = set()
    for message in messages:
        if message["role"] == "tool" and message.get("tool_call_id") in answered:
            continue
        if calls := _read_calls(message):
            taken += calls
            answered.update(str(call.get("id")) for call in message["tool_calls"])
        else:
            taken.append(message)
    return taken


def _read_calls(message: Message) -> list[ToolCall]:
    """Return the calls of tools that `message` consists of, or none if it contains anything else."""
    if message["role"] != "assistant" or message["content"].strip():
        return []
    read = [_read_call(message.get("name"), call) for call in message.get("tool_calls") or ()]
    calls = [call for call in read if call is not None]
    return calls if len(calls) == len(read) else []


def _read_call(character: str | None, call: Mapping[str, Any]) -> ToolCall | None:
    """Return the call of one of the tools.

    Returns None for another tool, including one of the same name with different arguments.
    """
    function = call.get("function")
    if not isinstance(function, dict) or function.get("name") not in _ARGUMENTS:
        return None
    try:
        arguments = json.loads(function.get("arguments") or "")
    except (TypeError, ValueError):
        return None
    needed, optional = _ARGUMENTS[function["name"]]
    if not isinstance(arguments, dict) or not needed <= arguments.keys() <= needed | optional:
        return None
    return ToolCall(character, arguments, function["name"])
