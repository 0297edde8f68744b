"""Pages of lists end before their texts take too many bytes, and continue where they ended."""

from collections.abc import Awaitable, Callable, Sequence

import httpx
import orjson
import pytest

from app.kit.paging import MAX_PAGE_BYTES, make_page
from tests.talk import Json, append, get, ok, put, said, talk, walk

WIDE = "語"
"""A character of three bytes, so that few requests fill a page."""

Fill = Callable[[httpx.AsyncClient], Awaitable[int]]


async def _fill_revisions(api: httpx.AsyncClient) -> int:
    await append(api, [said(1)])
    for number in range(16):
        content = f"{number}" + WIDE * 99_000
        ok(await api.patch("/v1/chats/c/messages/m1", json={"content": content}), 200)
    return 16


async def _fill_memos(api: httpx.AsyncClient) -> int:
    await append(api, talk(1, 2))
    for _ in range(75):
        ok(await api.post("/v1/chats/c/memos", json={"text": WIDE * 20_000}), 201)
    return 75


async def _fill_diary(api: httpx.AsyncClient) -> int:
    await put(api, characters=[{"name": "Kai"}])
    for _ in range(370):
        ok(await api.post("/v1/chats/c/diary", json={"content": WIDE * 4_000, "character": "Kai"}), 201)
    return 370


async def _fill_recap(api: httpx.AsyncClient) -> int:
    await put(api, settings={"preset": "scenes"})
    await append(api, talk(1, 2))
    ok(await api.put("/v1/chats/c/scenes/breaks/2"), 201)
    for number in range(75):
        ok(await api.put("/v1/chats/c/recap", json={"text": f"{number}" + WIDE * 19_000}), 200)
    return 75


async def _fill_chats(api: httpx.AsyncClient) -> int:
    for number in range(16):
        ok(await api.put(f"/v1/chats/c{number}", json={"system_prompt": WIDE * 100_000}), 201)
    return 16


@pytest.mark.parametrize(
    ("path", "fill"),
    [
        ("/v1/chats", _fill_chats),
        ("/v1/chats/c/diary", _fill_diary),
        ("/v1/chats/c/memos", _fill_memos),
        ("/v1/chats/c/messages/m1/revisions", _fill_revisions),
        ("/v1/chats/c/recap/versions", _fill_recap),
    ],
)
async def test_a_page_has_a_limited_number_of_bytes(api: httpx.AsyncClient, path: str, fill: Fill) -> None:
    filled = await fill(api)
    pages = await walk(api, path, limit=500)
    sizes = [len(orjson.dumps(page)) for page in pages]
    assert len(pages) > 1
    assert max(sizes) < MAX_PAGE_BYTES + 10_000
    assert min(sizes[:-1]) > MAX_PAGE_BYTES / 2
    assert sum(map(len, pages)) == filled
    assert len({orjson.dumps(item) for page in pages for item in page}) == filled
    few = await walk(api, path, limit=max(4, filled // 50))
    assert [item for page in few for item in page] == [item for page in pages for item in page]


@pytest.mark.parametrize(
    ("sizes", "more", "fitting"),
    [
        ([], False, 0),
        ([10, 10], False, 2),
        ([10, 10], True, 2),
        ([MAX_PAGE_BYTES * 2, 10], False, 1),
        ([MAX_PAGE_BYTES // 2, MAX_PAGE_BYTES // 2, 10], False, 1),
        ([MAX_PAGE_BYTES - 20, 10], True, 1),
    ],
)
def test_a_page_is_as_long_as_fits(sizes: Sequence[int], more: bool, fitting: int) -> None:
    items: list[Json] = [{"n": "x" * size} for size in sizes]
    page = make_page(items, [(n,) for n in range(len(items) + more)])
    assert page["items"] == items[:fitting]
    assert (page["next_cursor"] is not None) == (fitting < len(items) + more)


async def test_the_first_item_is_returned_however_long(api: httpx.AsyncClient) -> None:
    characters = [{"name": f"Kai {number}", "persona": WIDE * 100_000} for number in range(20)]
    await put(api, characters=characters)
    assert len((await get(api, ""))["characters"]) == 20
    assert [len(page) for page in await walk(api, "/v1/chats")] == [1]
