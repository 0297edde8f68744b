"""What fits into a context over HTTP: the promise of `max_tokens`, and the layers' own budgets."""

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.context.api.chats import CHAT, LORE
from tests.talk import append, context, ok, put, said, talk, talk_with_memos


async def test_max_tokens_is_respected_down_to_the_reported_minimum(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, **CHAT, settings={"token_factor": 1.35})
    await talk_with_memos(api, dispatcher, clock, 41)
    for name in ("segments", "openai", "anthropic", "text"):
        needed = (await context(api, 422, format=name, max_tokens=1))["needed_tokens"]
        whole = (await context(api, format=name))["tokens"]
        await context(api, 422, format=name, max_tokens=needed - 1)
        left_out: set[str] = set()
        for max_tokens in range(whole, needed - 1, -max(1, (whole - needed) // 12)):
            shown = await context(api, format=name, max_tokens=max_tokens)
            assert shown["tokens"] <= shown["max_tokens"] == max_tokens
            omitted = {f"{one['name']} {one['tokens']}" for one in shown["omitted"] if one["name"] != "history"}
            assert left_out <= omitted, "a smaller budget never shows what a bigger one left out"
            left_out = omitted
        floor = await context(api, format=name, max_tokens=needed)
        assert floor["tokens"] == needed
        assert {part["name"] for part in floor["segments"]} == {"system", "character", "user", "instruction", "newest"}


async def test_a_limit_below_the_floor_is_named_where_it_was_given(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 3))
    asked = await context(api, 422, max_tokens=1)
    posted = ok(await api.post("/v1/chats/c/context", json={"max_tokens": 1}), 422)
    assert [asked["errors"][0]["loc"], posted["errors"][0]["loc"]] == [["query", "max_tokens"], ["body", "max_tokens"]]
    assert asked["errors"][0]["msg"] == f"must be at least {asked['needed_tokens']}"


async def test_omitted_items_are_listed_in_order_with_a_reason(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, **CHAT, settings={"time": True})
    await talk_with_memos(api, dispatcher, clock, 65)
    body = {"segments": [LORE], "max_tokens": 1}
    body["max_tokens"] = ok(await api.post("/v1/chats/c/context", json=body), 422)["needed_tokens"]
    shown = ok(await api.post("/v1/chats/c/context", json=body), 200)
    assert [(one["name"], one["why"]) for one in shown["omitted"]] == [
        ("time", "max_tokens"),
        ("memos 1–5", "max_tokens"),
        ("memos 6–10", "max_tokens"),
        ("lore", "max_tokens"),
        ("history", "max_tokens"),
    ]
    assert shown["memo_window"]["memos"] == 0


async def test_blank_messages_make_no_history_too_long(api: httpx.AsyncClient) -> None:
    history = {"keep_messages": 4, "grow_messages": 4, "max_messages": 10, "edges": "every_message"}
    await put(api, settings={"history": history})
    await append(api, [*(said(n, content=" \n") for n in range(1, 4)), *talk(4, 12)])
    ok(await api.post("/v1/chats/c/memos", json={"text": "They once drove to the sea."}), 201)
    whole = await context(api)
    shown = await context(api, max_tokens=whole["tokens"] - 1)
    assert [one["name"] for one in shown["omitted"] if one["why"] == "max_tokens"] == ["memos 1–5"]
    assert shown["history"]["messages"] == whole["history"]["messages"] == 9


async def test_the_chats_own_limit_counts_where_none_is_asked_for(api: httpx.AsyncClient) -> None:
    await put(api, settings={"context_tokens": 100})
    await append(api, talk(1, 30))
    shown = await context(api)
    assert shown["tokens"] <= shown["max_tokens"] == 100
    assert shown["history"]["anchor_seq"] > 17
    await put(api, status=200, settings={"context_tokens": 3})
    assert (await context(api, 422))["needed_tokens"] > 3


async def test_a_continuing_scene_does_not_slide_in_a_tight_budget(api: httpx.AsyncClient) -> None:
    await put(api, settings={"preset": "scenes"})
    await append(api, talk(1, 33))
    starts = []
    for length in range(34, 90, 2):
        await append(api, talk(length, length + 1))
        shown = await context(api, max_tokens=500)
        assert shown["history"]["messages"] >= 16
        starts.append(shown["history"]["anchor_seq"])
    assert starts == sorted(starts)
    assert starts[-1] > 57
    assert len(set(starts)) <= 90 // 8
    assert {start % 8 for start in starts} == {1}


async def test_the_memo_budget_fills_from_the_newest(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await talk_with_memos(api, dispatcher, clock, 65)
    memos = (await context(api))["memo_window"]["memos"]
    assert memos == 6
    await put(api, status=200, settings={"memos": {"budget": {"type": "absolute", "value": 100}}})
    shown = await context(api)
    kept = shown["memo_window"]["memos"]
    assert 0 < kept < memos
    assert shown["memo_window"]["last_seq"] == 48
    assert [one["name"] for one in shown["omitted"]] == [f"memo {n}" for n in range(1, memos - kept + 1)]
    assert {one["why"] for one in shown["omitted"]} == {"budget"}
