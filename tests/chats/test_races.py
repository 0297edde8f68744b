"""What happens at once: retries, creations and erasures over connections of their own."""

import httpx

from tests.chats.conftest import PROCESSES, gathered
from tests.talk import Json, append, get, ok, said, talk, walk


async def test_racing_retries_leave_one_copy_in_one_order(clients: list[httpx.AsyncClient]) -> None:
    answers = await gathered(_post(client, talk(1, 12)) for client in clients)
    assert sorted(answer.status_code for answer in answers) == [200] * (PROCESSES - 1) + [201]
    assert len({str(answer.json()["messages"]) for answer in answers}) == 1
    assert await _ids(clients[0]) == [(n, f"m{n}") for n in range(1, 13)]
    counters = (await get(clients[0], ""))["counters"]
    assert (counters["messages"], counters["turns"], counters["memos"]) == (12, 6, 1)


async def test_overlapping_retries_store_each_message_once(
    clients: list[httpx.AsyncClient],
) -> None:
    for first in (1, 11, 21):
        parts = [talk(first + n, first + n + 4) for n in range(PROCESSES)]
        answers = await gathered(_post(client, part) for client, part in zip(clients, parts, strict=True))
        assert sum(answer.json()["created"] for answer in answers) == 10
    stored = await _ids(clients[0])
    assert [seq for seq, _ in stored] == list(range(1, 31))
    assert sorted(name for _, name in stored) == sorted(f"m{n}" for n in range(1, 31))
    for answer in answers:
        assert {(one["seq"], one["id"]) for one in answer.json()["messages"]} <= set(stored)


async def test_the_messages_of_a_racing_append_stay_together(clients: list[httpx.AsyncClient]) -> None:
    parts = [[said(10 * n + k, id=f"p{n}-{k}") for k in range(5)] for n in range(PROCESSES)]
    await gathered(append(client, part) for client, part in zip(clients, parts, strict=True))
    names = [name for _, name in await _ids(clients[0])]
    runs = [names[at : at + 5] for at in range(0, len(names), 5)]
    assert sorted(runs) == sorted([one["id"] for one in part] for part in parts)


async def test_of_two_texts_under_one_id_only_the_first_is_accepted(
    clients: list[httpx.AsyncClient],
) -> None:
    given = [[said(1, content=f"Text of {n}."), said(2, id=f"own-{n}")] for n in range(PROCESSES)]
    answers = await gathered(_post(client, messages) for client, messages in zip(clients, given, strict=True))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * (PROCESSES - 1)
    assert len(await _ids(clients[0])) == 2
    for answer in answers:
        if answer.status_code == 409:
            assert [error["id"] for error in answer.json()["errors"]] == ["m1"]


async def test_a_chat_that_many_create_at_once_is_created_once(clients: list[httpx.AsyncClient]) -> None:
    bodies = [{"metadata": {f"of-{n}": n}} for n in range(PROCESSES)]
    answers = await gathered(client.put("/v1/chats/c", json=body) for client, body in zip(clients, bodies, strict=True))
    assert sorted(answer.status_code for answer in answers) == [200] * (PROCESSES - 1) + [201]
    chat = await get(clients[0], "")
    assert chat["metadata"] == {f"of-{n}": n for n in range(PROCESSES)}
    assert {answer.json()["line"] for answer in answers} == {chat["line"]}


async def test_first_messages_and_a_put_create_one_chat_together(clients: list[httpx.AsyncClient]) -> None:
    first, *others = clients
    requests = [first.put("/v1/chats/c", json={"user_id": "mira"})]
    requests += [_post(client, [said(n)]) for n, client in enumerate(others, start=1)]
    assert {answer.status_code for answer in await gathered(requests)} <= {200, 201}
    chat = await get(first, "")
    assert (chat["user_id"], chat["counters"]["messages"]) == ("mira", len(others))
    assert [seq for seq, _ in await _ids(first)] == list(range(1, len(others) + 1))


async def test_an_append_racing_an_erasure_comes_before_or_after_it(clients: list[httpx.AsyncClient]) -> None:
    eraser, *others = clients
    for _ in range(8):
        await append(eraser, talk(1, 10))
        erased, *answers = await gathered(
            [eraser.delete("/v1/chats/c"), *(_post(client, [said(11), said(12)]) for client in others)]
        )
        assert erased.status_code == 204
        assert {answer.status_code for answer in answers} <= {200, 201}
        left = await eraser.get("/v1/chats/c/messages")
        if left.status_code == 200:  # appends after the erasure created a new chat, from seq 1 on
            assert [(one["seq"], one["id"]) for one in left.json()["items"]] == [(1, "m11"), (2, "m12")]
            assert (await get(eraser, ""))["head_seq"] == 2
            ok(await eraser.delete("/v1/chats/c"), 204)


async def test_a_batch_is_formed_once_however_many_fill_it(clients: list[httpx.AsyncClient]) -> None:
    parts = [[said(4 * n + k) for k in range(1, 5)] for n in range(PROCESSES)]
    await gathered(append(client, part) for client, part in zip(clients, parts, strict=True))
    memos = (await get(clients[0], "/memos"))["items"]
    assert [(memo["number"], memo["first_seq"], memo["last_seq"]) for memo in memos] == [
        (1, 1, 8),
        (2, 9, 16),
        (3, 17, 24),
    ]
    assert (await get(clients[0], ""))["work"] == {"due": 3, "failed": 0}


async def _post(client: httpx.AsyncClient, messages: list[Json]) -> httpx.Response:
    return await client.post("/v1/chats/c/messages", json={"messages": messages})


async def _ids(client: httpx.AsyncClient) -> list[tuple[int, str]]:
    pages = await walk(client, "/v1/chats/c/messages", limit=500)
    return [(one["seq"], one["id"]) for page in pages for one in page]
