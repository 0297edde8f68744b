"""How each message is in the context, or why it is not."""

from typing import Any

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.book import book
from tests.scripted_model import ScriptedModel, refuses
from tests.summary.folds import OWN_FOLDS
from tests.talk import WAITING_FOR_NOTHING, append, context, get, ok, put, said, talk, walk

SCENES = {
    "history": {"keep_messages": 8, "grow_messages": 0, "edges": "scenes", "keep_scenes": 1},
    "memos": {"enabled": False},
    "scenes": {"enabled": True, "detect": False},
}


async def test_a_message_is_verbatim_or_covered_by_its_memo(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 32))
    clock.step(2)
    await dispatcher.drain()
    assert await _runs(api) == [("verbatim", None, range(1, 33))], "while it is in the history its memo is held back"
    await append(api, [said(33)])
    first, second, *_ = (f"memo:{memo['id']}" for memo in (await get(api, "/memos"))["items"])
    assert await _runs(api) == [
        ("memo", first, range(1, 9)),
        ("memo", second, range(9, 17)),
        ("verbatim", None, range(17, 34)),
    ]
    sources = [source for part in (await context(api))["segments"] for source in part["sources"]]
    by = [one["by"] or f"message:{one['message_id']}" for one in (await get(api, "/inclusion"))["items"]]
    assert list(dict.fromkeys(by)) == sources, "what it says is what the context is made of"


async def test_an_expired_memo_leaves_its_messages_out(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, settings={"memos": {"window": 2}})
    await append(api, talk(1, 64))
    clock.step(2)
    await dispatcher.drain()
    assert [run[0] for run in await _runs(api)] == ["expired"] * 4 + ["memo"] * 2 + ["verbatim"]
    newest = (await get(api, "/memos"))["items"][5]
    one = (await context(api, format="text"))["segments"][1]["tokens"] // 2
    await put(api, status=200, settings={"memos": {"budget": {"type": "absolute", "value": one + 9}}})
    runs = await _runs(api)
    assert [run[0] for run in runs] == ["expired"] * 4 + ["out_of_budget", "memo", "verbatim"]
    assert runs[5][1] == f"memo:{newest['id']}"
    await put(api, status=200, settings={"memos": {"budget": {"type": "absolute", "value": 0}}})
    assert [run[0] for run in await _runs(api)] == ["expired"] * 4 + ["out_of_budget"] * 2 + ["verbatim"]


async def test_a_missing_memo_is_pending_then_failed_or_none(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, model: ScriptedModel
) -> None:
    await append(api, talk(1, 64))
    assert [run[0] for run in await _runs(api)] == ["pending"] * 6 + ["verbatim"]
    model.otherwise = lambda request: "NONE" if "number 1." in str(request["messages"][-1]) else refuses(400)
    for _ in range(6):
        clock.step(3_600)
        await dispatcher.drain()
    assert [run[0] for run in await _runs(api)] == ["none"] + ["failed"] * 5 + ["verbatim"]
    memo = (await get(api, "/memos"))["items"][0]
    ok(await api.delete(f"/v1/chats/c/memos/{memo['id']}"), 204)
    assert (await _runs(api))[0] == ("none", None, range(1, 9)), "a deleted memo stands for nothing"


async def test_excluded_messages_are_none_after_the_history(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await put(api, characters=[{"name": "Kai"}, {"name": "Ren", "disabled": True}])
    unheard = [
        {"role": "system", "content": "A note."},
        {"role": "tool", "content": "Waves.", "tool_call_id": "x"},
        {"role": "assistant", "content": "Hm.", "kind": "thought"},
        {"role": "user", "content": " \n"},
        {"role": "assistant", "content": "Ahem.", "name": "Ren"},
    ]
    await append(api, [*talk(1, 4), *unheard, {"role": "narrator", "content": "Rain."}, *talk(6, 64)])
    clock.step(2)
    await dispatcher.drain()
    runs = await _runs(api)
    assert [(status, seqs) for status, _, seqs in runs[:3]] == [
        ("memo", range(1, 5)),
        ("none", range(5, 10)),
        ("memo", range(10, 14)),
    ]
    assert runs[0][1] == runs[2][1], "one batch with what is not summarised inside it"


async def test_without_memos_old_messages_have_status_none(api: httpx.AsyncClient) -> None:
    await put(api, settings=WAITING_FOR_NOTHING)
    await append(api, [*talk(1, 32), {"role": "assistant", "content": "Hm.", "kind": "thought"}, said(33)])
    assert await _runs(api) == [
        ("none", None, range(1, 17)),
        ("verbatim", None, range(17, 33)),
        ("none", None, range(33, 34)),
        ("verbatim", None, range(34, 35)),
    ]


async def test_the_report_comes_in_pages(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 30))
    pages = await walk(api, "/v1/chats/c/inclusion", after_seq=3, limit=10)
    assert [[one["seq"] for one in page] for page in pages] == [
        list(range(4, 14)),
        list(range(14, 24)),
        list(range(24, 31)),
    ]
    assert pages[0][0] == {"seq": 4, "message_id": "m4", "status": "verbatim", "by": None}
    assert (await get(api, "/inclusion", after_seq=30))["items"] == []


@pytest.mark.parametrize("query", [{"after_seq": -1}, {"after_seq": 2**31}, {"limit": 501}, {"cursor": "x"}])
async def test_invalid_bounds_are_refused_by_name(api: httpx.AsyncClient, query: dict[str, int | str]) -> None:
    await put(api)
    problem = await get(api, "/inclusion", 422, **query)
    assert problem["errors"][0]["loc"] == ["query", *query]


async def test_an_empty_chat_has_an_empty_report_an_unknown_one_404(api: httpx.AsyncClient) -> None:
    await get(api, "/inclusion", 404)
    await put(api)
    assert await get(api, "/inclusion") == {"items": [], "next_cursor": None}


@pytest.mark.parametrize(("settings", "layer"), [(OWN_FOLDS, "summary"), (SCENES, "scenes")], ids=["summary", "scenes"])
async def test_no_message_is_pending_without_scheduled_work(
    api: httpx.AsyncClient, quoting_dispatcher: Dispatcher, clock: SteppedClock, settings: dict[str, Any], layer: str
) -> None:
    await put(api, settings=settings)
    await append(api, talk(1, 24))
    if layer == "scenes":
        ok(await api.put("/v1/chats/c/scenes/breaks/12"), 201)
    await _settle(quoting_dispatcher, clock)
    assert "pending" not in await _statuses(api)

    await put(api, settings={layer: {"enabled": False}}, status=200)
    await _settle(quoting_dispatcher, clock)

    assert (await get(api, ""))["work"] == {"due": 0, "failed": 0}
    assert "pending" not in await _statuses(api)


async def _runs(api: httpx.AsyncClient) -> list[tuple[str, str | None, range]]:
    """The report with neighbours of the same status and source as one: (status, by, seqs)."""
    runs: list[tuple[str, str | None, range]] = []
    for one in (await get(api, "/inclusion", limit=500))["items"]:
        told, seq = (one["status"], one["by"]), one["seq"]
        if runs and runs[-1][:2] == told:
            runs[-1] = (*told, range(runs[-1][2].start, seq + 1))
        else:
            runs.append((*told, range(seq, seq + 1)))
    return runs


async def test_a_memos_sources_keep_their_status_after_new_settings(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(api, talk(1, 32))
    clock.step(2)
    await dispatcher.drain()
    await append(api, [said(33)])
    before = await _runs(api)
    await put(api, status=200, settings={"memos": {"include_user": False}})
    assert await _runs(api) == before


async def test_a_held_memo_is_pending_for_hidden_messages(
    api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock, database: Database, tenant: str
) -> None:
    await append(api, talk(1, 32))
    clock.step(2)
    await dispatcher.drain()
    async with database.raw() as connection:
        query = "UPDATE messages SET hidden_by = 'scenes' WHERE chat_key = $1 AND seq = 6"
        await connection.execute(query, chat_key(tenant, "c"))
    (memo, *_) = await book(api)
    assert await _runs(api) == [
        ("verbatim", None, range(1, 6)),
        ("pending", f"memo:{memo['id']}", range(6, 7)),
        ("verbatim", None, range(7, 33)),
    ]


async def test_an_open_batch_is_pending_unless_memos_are_off(api: httpx.AsyncClient) -> None:
    history = {"keep_messages": 1, "grow_messages": 0, "max_messages": 5}
    await put(api, settings={"memos": {"every_messages": 6}, "history": history})
    await append(api, talk(1, 4))
    await append(api, talk(5, 5))
    assert await _runs(api) == [("pending", None, range(1, 5)), ("verbatim", None, range(5, 6))]
    await put(api, status=200, settings={"memos": {"enabled": False}})
    assert await _runs(api) == [("none", None, range(1, 5)), ("verbatim", None, range(5, 6))]


async def _settle(dispatcher: Dispatcher, clock: SteppedClock) -> None:
    for _ in range(5):
        clock.step(2)
        await dispatcher.drain()


async def _statuses(api: httpx.AsyncClient) -> set[str]:
    """How messages are in the context."""
    return {item["status"] for item in (await get(api, "/inclusion", limit=500))["items"]}
