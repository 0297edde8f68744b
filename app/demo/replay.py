"""Plays a conversation into the service as a frontend would: append, take the context of the next call, run its tools.

A person takes minutes where this takes milliseconds, so after every step it waits for what became due: the
contexts are those of a chat in which everything was remembered long before it was needed.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from app.demo.api import Api
from app.demo.bill import Account, Call
from app.demo.tool_calls import TOOL, Message, ToolCall

_MAX_STEP_MESSAGES = 8
_POLL_S = 0.05
_PATIENCE_S = 90.0
"""How long a model may take for what one step made due; once it takes longer, nothing is waited for any more."""


class Step(NamedTuple):
    """Messages that are sent in one request, and what follows it.

    Attributes:
        messages: In order; none where a conversation begins with a tool call.
        asks: Whether the request asks for the context of a call.
        calls: The tools that the model calls then.

    """

    messages: list[Message]
    asks: bool
    calls: list[ToolCall]


@dataclass(slots=True)
class Played:
    """What came of it so far.

    Attributes:
        times: When each message was sent, by its seq.
        account: What the calls cost.
        late: Why what is due is no longer waited for; None while it is.

    """

    times: dict[int, datetime] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    late: str | None = None


def split_steps(moments: Iterable[Message | ToolCall]) -> Iterator[Step]:
    """Messages and calls in steps, each ending where the assistant is to speak next; long ones are parted."""
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


async def play(api: Api, chat: str, moments: Sequence[Message | ToolCall], tell: Callable[[Played], None]) -> Played:
    """Play all of `moments` into the chat at the path `chat`; `tell` hears after each step. Raises DemoError."""
    played = Played()
    for step in split_steps(moments):
        if step.messages:
            await _append(api, chat, step, played)
        for call in step.calls:
            whose = {"character": call.character} if call.character else {}
            await api.post(f"{chat}/tools/{TOOL}", call.arguments, **whose)
        if played.late is None:
            played.late = await _wait_for_work(api, chat)
        tell(played)
    return played


async def _append(api: Api, chat: str, step: Step, played: Played) -> None:
    """Append a step; a call that follows is accounted for, unless no context fits its limit."""
    wish = {"context": {"format": "anthropic"}} if step.asks else {}
    answer = await api.post(f"{chat}/messages", {"messages": step.messages, **wish})
    for message in answer["messages"]:
        played.times[message["seq"]] = datetime.fromisoformat(message["sent_at"])
    if context := answer.get("context"):
        played.account.add(Call.of(context, played.times[max(played.times)]))


async def _wait_for_work(api: Api, chat: str) -> str | None:
    """Wait until everything that is due is made; returns why that is given up, if it is."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while due := await _list_due(api, chat):
                if error := next((work["error"] for work in due if work["attempts"] > 1 and work["error"]), None):
                    return str(error)
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return f"not all was made in {_PATIENCE_S:.0f} s"
    return None


async def _list_due(api: Api, chat: str) -> list[dict[str, Any]]:
    page = await api.get("/v1/work", chat_id=chat.rpartition("/")[2])
    return [work for work in page["items"] if work["status"] != "failed"]
