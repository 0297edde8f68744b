"""Plays a conversation into the service as a frontend does: appends messages, reads contexts, and calls tools.

After every step the replay waits for background work, because a real chat has minutes for it and the replay only
milliseconds. The contexts are therefore those of a chat in which all memory is ready in time.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from app.demo.api import Api
from app.demo.bill import Account, Call
from app.demo.tool_calls import Message, ToolCall

_MAX_STEP_MESSAGES = 8
_POLL_S = 0.05
_PATIENCE_S = 90.0
"""The maximum wait for the background work of one step, in seconds. After the first time-out, or once a work item that
failed is tried a second time, the replay no longer waits."""


class Step(NamedTuple):
    """Messages that are sent in one request, and the tool calls that follow.

    Attributes:
        messages: The messages in order; none if a conversation begins with a tool call.
        asks: Whether the request also asks for the context of the next call.
        calls: The tool calls that follow the messages.

    """

    messages: list[Message]
    asks: bool
    calls: list[ToolCall]


@dataclass(slots=True)
class Played:
    """The state of a replay.

    Attributes:
        times: When each message was sent, by its seq.
        account: The cost of the calls.
        late: Why the replay no longer waits for background work; None while it does.

    """

    times: dict[int, datetime] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    late: str | None = None


def split_steps(moments: Iterable[Message | ToolCall]) -> Iterator[Step]:
    """Yield the messages and tool calls in steps. A step ends before a reply, after tool calls, or after 8 messages."""
    messages: list[Message] = []
    calls: list[ToolCall] = []
    for moment in moments:
        if isinstance(moment, ToolCall):
            calls.append(moment)
            continue
        is_reply = moment["role"] == "assistant"
        if calls or (messages and (is_reply or len(messages) == _MAX_STEP_MESSAGES)):
            yield Step(messages, bool(messages) and is_reply, calls)
            messages, calls = [], []
        messages.append(moment)
    if messages or calls:
        yield Step(messages, bool(messages) and messages[-1]["role"] == "user", calls)


async def play(api: Api, chat: str, moments: Sequence[Message | ToolCall], report: Callable[[Played], None]) -> Played:
    """Play `moments` into the chat at the path `chat` and call `report` after each step. Raises DemoError."""
    played = Played()
    for step in split_steps(moments):
        if step.messages:
            await _append(api, chat, step, played)
        for call in step.calls:
            whose = {"character": call.character} if call.character else {}
            await api.post(f"{chat}/tools/{call.tool}", call.arguments, **whose)
        if played.late is None:
            played.late = await _wait_for_work(api, chat)
        report(played)
    return played


async def _append(api: Api, chat: str, step: Step, played: Played) -> None:
    """Append the messages of a step. If the response has a context, add the call to the account."""
    wish = {"context": {"format": "anthropic"}} if step.asks else {}
    answer = await api.post(f"{chat}/messages", {"messages": step.messages, **wish})
    for message in answer["messages"]:
        played.times[message["seq"]] = datetime.fromisoformat(message["sent_at"])
    if context := answer.get("context"):
        played.account.add(Call.of(context, played.times[max(played.times)]))


async def _wait_for_work(api: Api, chat: str) -> str | None:
    """Wait until all due work is done. Returns the reason if the wait is given up, else None."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while due := await _list_due(api, chat):
                if error := next((work["error"] for work in due if work["attempts"] > 1 and work["error"]), None):
                    return str(error)
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return f"it was not done within {_PATIENCE_S:.0f} s"
    return None


async def _list_due(api: Api, chat: str) -> list[dict[str, Any]]:
    page = await api.get("/v1/work", chat_id=chat.rpartition("/")[2])
    return [work for work in page["items"] if work["status"] != "failed"]
