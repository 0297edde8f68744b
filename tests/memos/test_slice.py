"""The main flow, end to end: eight messages become a memo, which later replaces them in the context."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.background import settle
from tests.scripted_model import ScriptedModel
from tests.talk import CALL, append, get, put, said


def turn(n: int) -> list[dict[str, str]]:
    return [
        {"id": f"u{n}", "role": "user", "content": f"Mira asks about lamp number {n}."},
        {"id": f"a{n}", "role": "assistant", "content": f"Kai gives Mira lamp number {n}."},
    ]


async def test_memos_are_made_in_the_background_and_shown_at_the_cut(
    api: httpx.AsyncClient, dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    for n in range(1, 17):
        answer = await api.post("/v1/chats/c/messages", json={"messages": turn(n)})
        assert answer.status_code == 201, answer.text
        clock.step(10)
        await dispatcher.drain()
    memos = (await api.get("/v1/chats/c/memos")).json()["items"]
    assert [(memo["first_seq"], memo["last_seq"], memo["status"]) for memo in memos] == [
        (1, 8, "ready"),
        (9, 16, "ready"),
        (17, 24, "ready"),
        (25, 32, "ready"),
    ]
    before = (await api.get("/v1/chats/c/context")).json()
    assert before["memo_window"]["memos"] == 0
    assert before["history"]["messages"] == 32

    await api.post("/v1/chats/c/messages", json={"messages": turn(17)[:1]})
    context = (await api.get("/v1/chats/c/context", params={"format": "openai"})).json()
    assert context["history"]["anchor_seq"] == 17
    assert context["history"]["last_cut"]["reason"] == "full"
    assert context["memo_window"] == {"memos": 2, "first_seq": 1, "last_seq": 16, "gaps": []}
    assert any("lamp number 1." in said["content"] for said in context["messages"] if said["role"] == "system")


@pytest.mark.parametrize("content", ["", " \n"])
async def test_a_message_that_only_calls_a_tool_fills_no_batch(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel, content: str
) -> None:
    await put(api, settings={"memos": {"every_messages": 3}})
    result = said(3, role="tool", content="Nothing there.", tool_call_id=CALL["id"])
    await append(api, [said(1), said(2, content=content, tool_calls=[CALL]), result, said(4)])
    await settle(dispatcher, clock)
    assert model.calls == [], "two eligible messages are no batch of three"
    await append(api, [said(5)])
    await settle(dispatcher, clock)
    assert [(memo["first_seq"], memo["last_seq"]) for memo in (await get(api, "/memos"))["items"]] == [(1, 5)]
    assert model.requests[0]["messages"][-1]["content"].count('"message"') == 3
