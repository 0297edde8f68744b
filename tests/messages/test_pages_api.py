"""Reading messages over HTTP: pages, single ones, lines."""

import httpx
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from tests.talk import append, get, ok, said, talk, walk


async def test_an_unknown_message_is_a_404(api: httpx.AsyncClient) -> None:
    await append(api, [said(1)])
    assert (await get(api, "/messages/m2", 404))["code"] == "message_not_found"
    assert (await get(api, "/messages/%00", 422))["errors"][0]["loc"] == ["path", "message_id"]
    ok(await api.get("/v1/chats/d/messages/m1"), 404)


@pytest.mark.parametrize(
    ("query", "seqs", "more"),
    [
        ({}, range(1, 51), True),
        ({"limit": 500}, range(1, 61), False),
        ({"after_seq": 50}, range(51, 61), False),
        ({"after_seq": 60}, range(0), False),
        ({"before_seq": 4}, range(1, 4), False),
        ({"before_seq": 60, "limit": 3}, range(57, 60), False),
        ({"after_seq": 10, "before_seq": 14}, range(11, 14), False),
        ({"after_seq": 10, "before_seq": 40, "limit": 5}, range(11, 16), True),
        ({"around_seq": 30, "limit": 5}, range(28, 33), True),
        ({"around_seq": 1, "limit": 5}, range(1, 6), True),
        ({"around_seq": 60, "limit": 5}, range(58, 61), False),
        ({"around_seq": 30, "limit": 1}, range(30, 31), True),
        ({"before_seq": 2_147_483_647, "limit": 1}, range(60, 61), False),
        ({"around_seq": 0, "limit": 2}, range(1, 3), True),
    ],
)
async def test_a_page_is_in_the_order_of_seq_within_exclusive_bounds(
    api: httpx.AsyncClient, query: dict[str, int], seqs: range, more: bool
) -> None:
    await append(api, talk(1, 60))
    page = await get(api, "/messages", **query)
    assert [one["seq"] for one in page["items"]] == list(seqs)
    assert (page["next_cursor"] is not None) == more


@pytest.mark.parametrize("query", [{}, {"after_seq": 3}, {"after_seq": 3, "before_seq": 20}, {"around_seq": 10}])
async def test_pages_follow_each_other_without_holes_or_repeats(api: httpx.AsyncClient, query: dict[str, int]) -> None:
    await append(api, talk(1, 25))
    pages = await walk(api, "/v1/chats/c/messages", **query, limit=4)
    seqs = [one["seq"] for page in pages for one in page]
    assert seqs == list(range(seqs[0], seqs[-1] + 1))
    assert seqs[-1] == query.get("before_seq", 26) - 1


async def test_a_message_names_its_memo(api: httpx.AsyncClient, dispatcher: Dispatcher, clock: SteppedClock) -> None:
    await append(api, talk(1, 17))
    first, second = (memo["id"] for memo in (await get(api, "/memos"))["items"])
    clock.step(2)
    await dispatcher.drain()
    read = (await get(api, "/messages", after_seq=6))["items"]
    assert [one["memo_id"] for one in read] == [first] * 2 + [second] * 8 + [None]
    assert (await get(api, "/messages/m9"))["memo_id"] == second


async def test_the_line_may_be_named_and_must_be_the_chats(api: httpx.AsyncClient) -> None:
    await append(api, [said(1)])
    await append(api, [said(1)], "d")
    line = (await get(api, ""))["line"]
    other = ok(await api.get("/v1/chats/d"), 200)["line"]
    for path in ("/messages", "/messages/m1", "/context", "/memos"):
        await get(api, path, line=line)
        assert (await get(api, path, 404, line=other))["code"] == "line_not_found"
        assert (await get(api, path, 422, line="main"))["errors"][0]["loc"] == ["query", "line"]
