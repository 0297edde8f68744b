"""A page of messages has at most 4 MiB of text, swipes included; the next page continues."""

import httpx
import pytest

from app.kit.paging import MAX_PAGE_BYTES
from tests.talk import Json, append, get, put, said

LONG = "\N{WAXING CRESCENT MOON SYMBOL}" * 99_999  # 400 kB
IN_A_PAGE = MAX_PAGE_BYTES // len(LONG.encode())


async def test_a_page_ends_before_it_has_too_many_bytes(api: httpx.AsyncClient) -> None:
    await put(api, settings={"memos": {"enabled": False}})
    for first in (1, 11, 21):
        await append(api, [said(n, content=LONG) for n in range(first, first + 10)])
    seqs: list[int] = []
    cursor: str | None = None
    sizes = []
    for _ in range(10):
        query: Json = {"limit": 500} | ({"cursor": cursor} if cursor else {})
        page = await get(api, "/messages", **query)
        seqs += [message["seq"] for message in page["items"]]
        sizes.append(len(page["items"]))
        if (cursor := page["next_cursor"]) is None:
            break
    assert seqs == list(range(1, 31))
    assert sizes == [IN_A_PAGE, IN_A_PAGE, 30 - 2 * IN_A_PAGE]
    around = await get(api, "/messages", limit=500, around_seq=15)
    assert [message["seq"] for message in around["items"]] == list(range(15 - IN_A_PAGE // 2, 15 + IN_A_PAGE // 2))
    newest = await get(api, "/messages", limit=500, before_seq=31)
    assert [message["seq"] for message in newest["items"]] == list(range(31 - IN_A_PAGE, 31))


async def test_swipes_count_and_one_message_is_always_there(api: httpx.AsyncClient) -> None:
    await put(api, settings={"memos": {"enabled": False}})
    for n in (1, 2):
        await append(api, [said(n, content=LONG, swipes=[LONG, *(f"{LONG[:-3]}{m}" for m in range(12))])])
    page = await get(api, "/messages")
    assert [message["seq"] for message in page["items"]] == [1]
    assert len(page["items"][0]["swipes"]) == 13
    rest = await get(api, "/messages", cursor=page["next_cursor"])
    assert ([message["seq"] for message in rest["items"]], rest["next_cursor"]) == ([2], None)


@pytest.mark.parametrize(("around_seq", "seqs"), [(1, [1]), (2, [2, 3]), (3, [2, 3]), (4, [3, 4]), (5, [4])])
async def test_a_page_around_a_message_has_the_same_limit(
    api: httpx.AsyncClient, around_seq: int, seqs: list[int]
) -> None:
    await put(api, settings={"memos": {"enabled": False}})
    for n in (1, 2):
        await append(api, [said(n, content=LONG, swipes=[LONG, *(f"{LONG[:-3]}{m}" for m in range(IN_A_PAGE // 2))])])
    await append(api, [said(3), said(4)])
    page = await get(api, "/messages", limit=2, around_seq=around_seq)
    assert [message["seq"] for message in page["items"]] == seqs
    assert (page["next_cursor"] is None) == (seqs[-1] == 4)
