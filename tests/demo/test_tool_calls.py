"""What of a log is a call of a tool of the service that writes, and what stays a message."""

from typing import Any

import orjson
import pytest

from app.demo.tool_calls import ToolCall, take_calls


def call(name: str = "save_memory", arguments: str = '{"content": "He came."}', call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def says(role: str = "assistant", content: str = "", **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def test_a_call_replaces_its_message_and_its_result_is_omitted() -> None:
    hello, late = says("user", "Hello?"), says(content="Late.")
    log = [
        hello,
        says(name="Mira", content=" ", tool_calls=[call()]),
        says("tool", "It is written.", tool_call_id="c1"),
        late,
    ]
    assert take_calls(log) == [hello, ToolCall("Mira", {"content": "He came."}), late]


def test_a_message_may_be_several_calls() -> None:
    log = [says(tool_calls=[call(), call(arguments='{"content": "He left."}', call_id="c2")])]
    assert take_calls(log) == [ToolCall(None, {"content": "He came."}), ToolCall(None, {"content": "He left."})]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("set_fact", {"key": "brother", "value": "Tomas"}),
        ("memory_block_update", {"block": "user", "operation": "append", "content": "Mira."}),
        (
            "memory_block_update",
            {"block": "user", "operation": "search_replace", "content": "Mira", "search_pattern": "Ida"},
        ),
    ],
)
def test_facts_and_blocks_are_called_too(tool: str, arguments: dict[str, str]) -> None:
    made = call(tool, orjson.dumps(arguments).decode())
    assert take_calls([says(name="Mira", tool_calls=[call(), made])]) == [
        ToolCall("Mira", {"content": "He came."}),
        ToolCall("Mira", arguments, tool),
    ]


@pytest.mark.parametrize(
    "message",
    [
        says(content="I shall remember it.", tool_calls=[call()]),
        says(tool_calls=[call(), call("set_fact")]),
        says(tool_calls=[call("set_fact", '{"key": "brother"}')]),
        says(tool_calls=[call("set_fact", '{"key": "brother", "value": "Tomas", "unit": "x"}')]),
        says(tool_calls=[call("forget_fact", '{"key": "brother"}')]),
        says(tool_calls=[call(arguments="He came.")]),
        says(tool_calls=[call(arguments='"He came."')]),
        says(tool_calls=[call(arguments='{"text": "He came."}')]),
        says(tool_calls=[{"id": "c1", "type": "custom"}]),
        says("user", tool_calls=[call()]),
        says("tool", "Rain.", tool_call_id="c9"),
        says(),
    ],
    ids=lambda message: orjson.dumps(message).decode(),
)
def test_everything_else_stays_a_message(message: dict[str, Any]) -> None:
    assert take_calls([message]) == [message]
