"""A conversation that several people's processes change at once: each change comes before or after the other."""

from collections.abc import Awaitable, Sequence
from typing import Any

import httpx

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.background import while_the_model_is_asked
from tests.book import book, due_rows, key_column
from tests.chats.conftest import PROCESSES, gathered
from tests.scripted_model import ScriptedModel
from tests.talk import CHAT, Json, append, context, get, ok, put, said, talk, walk

ROUNDS = 6


async def lines_of(api: httpx.AsyncClient) -> list[Json]:
    """The lines of the chat `c`, without checkpoints."""
    items: list[Json] = (await get(api, "/lines"))["items"]
    return items


async def messages_of(api: httpx.AsyncClient, line: str | None = None, chat_id: str = "c") -> list[Json]:
    """All messages of a line."""
    query = {"line": line} if line else {}
    return [one for page in await walk(api, f"/v1/chats/{chat_id}/messages", limit=500, **query) for one in page]


async def check_counts(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    """What the rows of the chat count is there, on each line: no seq twice, none left out."""
    async with database.raw() as connection:
        rows = await connection.fetch(
            """
            SELECT c.head_seq, c.message_count, c.history_messages,
                (SELECT count(*) FROM messages m WHERE (m.chat_key, m.line_id) = (c.chat_key, c.line_id)) AS seqs,
                (SELECT count(*) FROM messages m WHERE (m.chat_key, m.line_id) = (c.chat_key, c.line_id)
                    AND deleted_at IS NULL) AS living,
                (SELECT count(*) FROM messages m WHERE (m.chat_key, m.line_id) = (c.chat_key, c.line_id)
                    AND deleted_at IS NULL AND hidden_by IS NULL AND seq >= c.anchor_seq) AS sent
            FROM chats c WHERE c.chat_key = $1
            """,
            chat_key(tenant, "c"),
        )
    assert rows
    for row in rows:
        assert row["seqs"] == row["head_seq"]
        assert row["living"] == row["message_count"]
        assert row["sent"] == row["history_messages"]
    assert len([line for line in await lines_of(api) if line["current"]]) == 1


def posting(clients: Sequence[httpx.AsyncClient], parts: Sequence[list[Json]]) -> list[Awaitable[httpx.Response]]:
    """Each client appends its part."""
    return [
        client.post(f"{CHAT}/messages", json={"messages": part}) for client, part in zip(clients, parts, strict=True)
    ]


async def test_each_racing_edit_is_the_current_text_or_a_revision(clients: list[httpx.AsyncClient]) -> None:
    await append(clients[0], talk(1, 8))
    edited = [f"Text of {n}." for n in range(PROCESSES)]
    answers = await gathered(
        client.patch(f"{CHAT}/messages/m3", json={"content": text})
        for client, text in zip(clients, edited, strict=True)
    )
    assert {answer.status_code for answer in answers} == {200}
    revisions = (await get(clients[0], "/messages/m3/revisions"))["items"]
    assert [one["number"] for one in revisions] == list(range(PROCESSES, 0, -1))
    last = (await get(clients[0], "/messages/m3"))["content"]
    assert sorted([last, *(one["content"] for one in revisions)]) == sorted([*edited, said(3)["content"]])


async def test_each_racing_swipe_is_stored_once(clients: list[httpx.AsyncClient]) -> None:
    await append(clients[0], talk(1, 2))
    added = [f"Text of {n}." for n in range(PROCESSES)]
    await gathered(
        client.post(f"{CHAT}/messages/m2/swipes", json={"content": text})
        for client, text in zip(clients, added, strict=True)
    )
    message = await get(clients[0], "/messages/m2")
    assert message["swipes"][0] == said(2)["content"]
    assert sorted(message["swipes"][1:]) == sorted(added)
    assert message["content"] == message["swipes"][message["selected_swipe"]] == message["swipes"][-1]


async def test_concurrent_edits_and_appends_leave_each_batch_due_once(
    clients: list[httpx.AsyncClient], database: Database, tenant: str, dispatcher: Dispatcher, clock: SteppedClock
) -> None:
    await append(clients[0], talk(1, 16))
    for first in range(17, 17 + 8 * ROUNDS, 8):
        editing = [
            client.patch(f"{CHAT}/messages/m{first - 16 + n}", json={"content": f"In round {first}."})
            for n, client in enumerate(clients[:3])
        ]
        appending = [
            client.post(f"{CHAT}/messages", json={"messages": talk(first + 4 * n, first + 4 * n + 3)})
            for n, client in enumerate(clients[3:5])
        ]
        hiding = [clients[5].patch(f"{CHAT}/messages/m{first - 9}", json={"hidden": True})]
        answers = await gathered([*editing, *appending, *hiding])
        assert {answer.status_code for answer in answers} <= {200, 201}
    await check_counts(clients[0], database, tenant)
    memos = await book(clients[0])
    assert {row["key"] for row in await due_rows(database, tenant, "memos")} == {memo["id"] for memo in memos}
    clock.step(30)
    await dispatcher.drain()
    assert [(memo["status"], memo["stale"]) for memo in await book(clients[0])] == [("ready", False)] * len(memos)


async def test_an_edit_during_the_call_makes_its_memo_again(
    clients: list[httpx.AsyncClient], dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.script("【Highlight 1】: It was the old text.", "【Highlight 1】: It is the new text.")
    await append(clients[0], talk(1, 8))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        ok(await clients[1].patch(f"{CHAT}/messages/m3", json={"content": "Something else."}), 200)
    (memo,) = await book(clients[0])
    assert (memo["status"], memo["text"], memo["error"]) == ("pending", "", None)
    clock.step(2)
    await dispatcher.drain()
    (memo,) = await book(clients[0])
    assert (memo["status"], memo["text"], memo["attempts"]) == ("ready", "【Highlight 1】: It is the new text.", 1)
    assert "Something else." in str(model.requests[-1])


async def test_a_batch_truncated_during_its_job_gets_no_memo(
    clients: list[httpx.AsyncClient], dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    await append(clients[0], talk(1, 8))
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        ok(await clients[1].delete(f"{CHAT}/messages", params={"from_seq": 5}), 204)
        await append(clients[2], talk(9, 12))
    (memo,) = await book(clients[0])
    assert (memo["first_seq"], memo["last_seq"], memo["status"]) == (1, 12, "pending")
    clock.step(2)
    await dispatcher.drain()
    assert [memo["status"] for memo in await book(clients[0])] == ["ready"]


async def test_an_append_racing_a_restore_is_stored_on_one_line(
    clients: list[httpx.AsyncClient], database: Database, tenant: str
) -> None:
    first, *others = clients
    await append(first, talk(1, 20))
    ok(await first.post(f"{CHAT}/checkpoints", json={"name": "fork in the road"}), 201)
    for n in range(ROUNDS):
        parts = [[said(100 + 10 * n + k, id=f"r{n}-{k}")] for k in range(len(others))]
        restored, *answers = await gathered(
            [
                first.post(f"{CHAT}/checkpoints/fork in the road/restore"),
                *(
                    client.post(f"{CHAT}/messages", json={"messages": part})
                    for client, part in zip(others, parts, strict=True)
                ),
            ]
        )
        assert restored.status_code == 201
        assert {answer.status_code for answer in answers} == {201}
        found = [one["id"] for line in await lines_of(first) for one in await messages_of(first, line["line"])]
        for (message,) in parts:
            assert found.count(message["id"]) == 1
        await check_counts(first, database, tenant)
        assert (await get(first, ""))["line"] == restored.json()["line"]


async def test_racing_restores_each_make_a_line_and_one_is_current(
    clients: list[httpx.AsyncClient], database: Database, tenant: str
) -> None:
    await append(clients[0], talk(1, 20))
    ok(await clients[0].post(f"{CHAT}/checkpoints", json={"name": "here"}), 201)
    answers = await gathered(client.post(f"{CHAT}/checkpoints/here/restore") for client in clients)
    assert {answer.status_code for answer in answers} == {201}
    made = {answer.json()["line"] for answer in answers}
    lines = await lines_of(clients[0])
    assert len(made) == PROCESSES
    assert {line["line"] for line in lines} > made
    assert len(lines) == PROCESSES + 1
    assert (await get(clients[0], ""))["line"] in made
    await check_counts(clients[0], database, tenant)


async def test_a_memo_that_is_made_during_a_restore_stays_on_its_line(
    clients: list[httpx.AsyncClient], dispatcher: Dispatcher, model: ScriptedModel, clock: SteppedClock
) -> None:
    model.script("【Highlight 1】: Made on the line that was left.", "【Highlight 1】: Made on the line that goes on.")
    await append(clients[0], talk(1, 8))
    ok(await clients[0].post(f"{CHAT}/checkpoints", json={"name": "here"}), 201)
    left = (await get(clients[0], ""))["line"]
    clock.step(2)
    async with while_the_model_is_asked(dispatcher, model):
        ok(await clients[1].post(f"{CHAT}/checkpoints/here/restore"), 201)
    await dispatcher.drain()
    (here,) = await book(clients[0])
    (there,) = (await get(clients[0], "/memos", line=left))["items"]
    assert here["text"] == "【Highlight 1】: Made on the line that goes on."
    assert there["text"] == "【Highlight 1】: Made on the line that was left."
    assert here["id"] == there["id"]


async def test_a_checkpoint_racing_appends_is_consistent(
    clients: list[httpx.AsyncClient], database: Database, tenant: str
) -> None:
    first, *others = clients
    await append(first, talk(1, 8))
    for n in range(ROUNDS):
        parts = [talk(9 + 40 * n + 8 * k, 16 + 40 * n + 8 * k) for k in range(len(others))]
        made, *_ = await gathered(
            [
                first.post(f"{CHAT}/checkpoints", json={"name": f"moment {n}"}),
                *(
                    client.post(f"{CHAT}/messages", json={"messages": part})
                    for client, part in zip(others, parts, strict=True)
                ),
            ]
        )
        frozen = ok(made, 201)
        there = await messages_of(first, frozen["line"])
        assert [one["seq"] for one in there] == list(range(1, frozen["head_seq"] + 1))
        assert len(there) % 8 == 0
        memos = (await get(first, "/memos", line=frozen["line"], limit=500))["items"]
        assert [memo["last_seq"] for memo in memos] == list(range(8, len(there) + 1, 8))
    await check_counts(first, database, tenant)


async def test_of_two_checkpoints_of_one_name_the_second_is_refused(clients: list[httpx.AsyncClient]) -> None:
    await append(clients[0], talk(1, 8))
    answers = await gathered(client.post(f"{CHAT}/checkpoints", json={"name": "here"}) for client in clients)
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * (PROCESSES - 1)
    assert len((await get(clients[0], "/checkpoints"))["items"]) == 1


async def test_a_chat_is_forked_or_created_once(clients: list[httpx.AsyncClient]) -> None:
    await append(clients[0], talk(1, 20))
    for n in range(ROUNDS):
        to: dict[str, Any] = {"chat_id": f"other-{n}", "at_seq": 12}
        told = {"messages": [said(1, id="own")]}
        *forks, appended = await gathered(
            [
                *(client.post(f"{CHAT}/fork", json=to) for client in clients[:-1]),
                clients[-1].post(f"/v1/chats/other-{n}/messages", json=told),
            ]
        )
        assert appended.status_code == 201
        codes = sorted(fork.status_code for fork in forks)
        there = [one["id"] for one in await messages_of(clients[0], chat_id=f"other-{n}")]
        if codes[0] == 201:
            assert codes == [201] + [409] * (len(forks) - 1)
            assert there == [*(f"m{k}" for k in range(1, 13)), "own"]
        else:
            assert codes == [409] * len(forks)
            assert there == ["own"]


async def test_cutting_off_the_end_comes_before_an_append_or_after_it(
    clients: list[httpx.AsyncClient], database: Database, tenant: str
) -> None:
    first, second, *others = clients
    await append(first, talk(1, 20))
    for n in range(ROUNDS):
        parts = [talk(100 + 30 * n + 5 * k, 104 + 30 * n + 5 * k) for k in range(len(others))]
        answers = await gathered(
            [
                first.delete(f"{CHAT}/messages", params={"from_seq": 18}),
                second.delete(f"{CHAT}/messages", params={"from_seq": 12}),
                *(
                    client.post(f"{CHAT}/messages", json={"messages": part})
                    for client, part in zip(others, parts, strict=True)
                ),
            ]
        )
        assert {answer.status_code for answer in answers} == {201, 204}
        await check_counts(first, database, tenant)
        left = [one["id"] for one in await messages_of(first)]
        assert left[:11] == [f"m{k}" for k in range(1, 12)]
        runs = [left[at : at + 5] for at in range(11, len(left), 5)]
        assert all(run in [[one["id"] for one in part] for part in parts] for run in runs)
    assert (await context(first))["history"]["messages"] >= 11


async def test_re_imports_and_appends_at_once_are_one_after_another(
    clients: list[httpx.AsyncClient], database: Database, tenant: str
) -> None:
    await append(clients[0], talk(1, 20))
    wanted = {"messages": [*talk(1, 9), said(99, id="inserted"), *talk(10, 20)]}
    answers = await gathered(
        [
            *(client.put(f"{CHAT}/messages", json=wanted) for client in clients[:3]),
            *(
                client.post(f"{CHAT}/messages", json={"messages": [said(200 + n, id=f"late-{n}")]})
                for n, client in enumerate(clients[3:])
            ),
        ]
    )
    assert {answer.status_code for answer in answers} <= {200, 201}
    left = [one["id"] for one in await messages_of(clients[0])]
    assert left[:21] == [*(f"m{n}" for n in range(1, 10)), "inserted", *(f"m{n}" for n in range(10, 21))]
    assert set(left[21:]) <= {f"late-{n}" for n in range(3)}
    assert sum(answer.json().get("added", 0) for answer in answers) >= 1
    await check_counts(clients[0], database, tenant)


async def test_an_erasure_racing_restores_leaves_no_rows(
    clients: list[httpx.AsyncClient], database: Database, tenant: str
) -> None:
    eraser, *others = clients
    for _ in range(ROUNDS):
        await append(eraser, talk(1, 20))
        ok(await eraser.post(f"{CHAT}/checkpoints", json={"name": "here"}), 201)
        restoring = [client.post(f"{CHAT}/checkpoints/here/restore") for client in others]
        erased, *answers = await gathered([eraser.delete(CHAT), *restoring])
        assert erased.status_code == 204
        assert {answer.status_code for answer in answers} <= {201, 404}
        async with database.raw() as connection:
            for table in ("chats", "messages", "memos", "work"):
                query = f"SELECT count(*) FROM {table} WHERE {key_column(table)} = $1"
                assert await connection.fetchval(query, chat_key(tenant, "c")) == 0, table


async def test_concurrent_switches_and_writes_do_not_deadlock(
    clients: list[httpx.AsyncClient], database: Database, tenant: str
) -> None:
    switcher, restorer, *others = clients
    await append(switcher, talk(1, 20))
    first = (await get(switcher, ""))["line"]
    ok(await switcher.post(f"{CHAT}/checkpoints", json={"name": "here"}), 201)
    second = ok(await switcher.post(f"{CHAT}/checkpoints/here/restore"), 201)["line"]

    async def switch() -> list[int]:
        lines = [first, second] * (5 * ROUNDS)
        return [(await switcher.post(f"{CHAT}/lines/{line}/switch")).status_code for line in lines]

    async def write(client: httpx.AsyncClient, n: int) -> list[int]:
        codes = []
        for k in range(5 * ROUNDS):
            message = said(1, id=f"w{n}-{k}")
            codes.append((await client.post(f"{CHAT}/messages", json={"messages": [message]})).status_code)
            codes.append((await client.patch(f"{CHAT}/messages/m3", json={"content": f"{n} {k}"})).status_code)
            codes.append((await client.put(CHAT, json={"user_id": f"user-{k}"})).status_code)
        return codes

    async def restore() -> list[int]:
        path = f"{CHAT}/checkpoints/here/restore"
        return [(await restorer.post(path)).status_code for _ in range(ROUNDS)]

    codes = await gathered([switch(), restore(), *(write(client, n) for n, client in enumerate(others))])
    assert {code for each in codes for code in each} <= {200, 201}
    await check_counts(switcher, database, tenant)


async def test_a_user_is_erased_while_others_fork_onto_the_chats(clients: list[httpx.AsyncClient]) -> None:
    eraser, *others = clients
    for _ in range(ROUNDS):
        for n in range(8):
            await put(eraser, f"of-{n}", user_id="mira")
            await append(eraser, talk(1, 8), f"of-{n}")
        forking = [
            client.post(f"/v1/chats/of-{n}/fork", json={"chat_id": f"of-{7 - n}"}) for n, client in enumerate(others)
        ]
        erased, *answers = await gathered([eraser.delete("/v1/users/mira"), *forking])
        assert erased.status_code == 204
        assert {answer.status_code for answer in answers} <= {201, 404, 409}
        ok(await eraser.delete("/v1/users/mira"), 204)
