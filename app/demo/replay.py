"""Plays a conversation into the service as a frontend would: append, and take the context of the next call.

A person takes minutes where this takes milliseconds, so after every step it waits for the memos that became
due: the contexts are those of a chat in which the memos were written long before they were needed.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from app.demo.api import Api
from app.demo.bill import Account, Call

_MAX_STEP_MESSAGES = 8
_POLL_S = 0.05
_PATIENCE_S = 90.0
"""How long a model may take for what one step made due; once it takes longer, nothing is waited for any more."""


class Step(NamedTuple):
    """Messages that are sent in one request, and whether it asks for the context of a call."""

    messages: list[dict[str, Any]]
    asks: bool


@dataclass(slots=True)
class Played:
    """What came of it so far.

    Attributes:
        times: When each message was sent, by its seq.
        account: What the calls cost.
        late: Why memos are no longer waited for; None while they are.

    """

    times: dict[int, datetime] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    late: str | None = None


def split_steps(messages: Sequence[dict[str, Any]]) -> Iterator[Step]:
    """The messages in steps, each ending where the assistant is to speak next; long ones are parted."""
    step: list[dict[str, Any]] = []
    for message in messages:
        is_reply = message["role"] == "assistant"
        if step and (is_reply or len(step) == _MAX_STEP_MESSAGES):
            yield Step(step, asks=is_reply)
            step = []
        step.append(message)
    if step:
        yield Step(step, asks=step[-1]["role"] == "user")


async def play(api: Api, chat: str, messages: Sequence[dict[str, Any]], tell: Callable[[Played], None]) -> Played:
    """Append all of `messages` to the chat at the path `chat`; `tell` hears after each step. Raises DemoError."""
    played = Played()
    for step in split_steps(messages):
        await _append(api, chat, step, played)
        if played.late is None:
            played.late = await _wait_for_memos(api, chat)
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


async def _wait_for_memos(api: Api, chat: str) -> str | None:
    """Wait until every memo that is due is made; returns why that is given up, if it is."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while due := await _list_due(api, chat):
                if error := next((work["error"] for work in due if work["attempts"] > 1 and work["error"]), None):
                    return str(error)
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return f"none in {_PATIENCE_S:.0f} s"
    return None


async def _list_due(api: Api, chat: str) -> list[dict[str, Any]]:
    page = await api.get("/v1/work", chat_id=chat.rpartition("/")[2])
    return [work for work in page["items"] if work["status"] != "failed"]
