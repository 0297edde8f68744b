"""What a character wrote into its diary in the middle of a conversation, taken out of its messages. Pure.

A frontend keeps such a call as its model's API has it: a message of the assistant with `tool_calls` and as a rule
nothing said, followed by the tool's result. To the service it is no message: it is sent where the tool is.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

TOOL = "save_memory"

Message = dict[str, Any]
"""In the form that append takes."""


class ToolCall(NamedTuple):
    """A call of the tool.

    Attributes:
        character: Who called it, if that is said.
        arguments: As the tool takes them.

    """

    character: str | None
    arguments: Mapping[str, Any]


def take_calls(messages: Sequence[Message]) -> list[Message | ToolCall]:
    """The same conversation in order, with calls in the place of the messages that were nothing else.

    Their results are left out. A message that says something, or calls another tool as well, stays as it is.
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
    """The calls that `message` consists of; none if it is anything else."""
    if message["role"] != "assistant" or message["content"].strip():
        return []
    read = [_read_arguments(call) for call in message.get("tool_calls") or ()]
    calls = [ToolCall(message.get("name"), arguments) for arguments in read if arguments is not None]
    return calls if len(calls) == len(read) else []


def _read_arguments(call: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the tool was called with; None for another tool, also one of the same name that takes something else."""
    function = call.get("function")
    if not isinstance(function, dict) or function.get("name") != TOOL:
        return None
    try:
        arguments = json.loads(function.get("arguments") or "")
    except (TypeError, ValueError):
        return None
    return arguments if isinstance(arguments, dict) and arguments.keys() == {"content"} else None
