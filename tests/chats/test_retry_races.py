"""Retries by hand beside changes of the current line: work that waits on a line that is not current stays parked."""

import httpx

from app.kit.clock import SteppedClock
from app.kit.db import Database
from app.kit.ids import chat_key
from tests.chats.conftest import gathered
from tests.talk import CHAT, append, get, ok, talk

ROUNDS = 25


async def test_a_retry_wakes_no_work_of_a_line_that_is_left(
    clients: list[httpx.AsyncClient], database: Database, tenant: str, clock: SteppedClock
) -> None:
    first, second, third, fourth, *_ = clients
    chat = chat_key(tenant, "c")
    await append(first, talk(1, 64))
    former = (await get(first, ""))["line"]
    ok(await first.post(f"{CHAT}/checkpoints", json={"name": "dusk"}), 201)
    retried = 0
    for round_ in range(ROUNDS):
        async with database.raw() as connection:
            await connection.execute("UPDATE work SET attempts = 6, failed_at = now() WHERE owner_key = $1", chat)
        single = ok(await first.get("/v1/work"), 200)["items"][0]["id"]
        change = f"/lines/{former}/switch" if round_ % 2 else "/checkpoints/dusk/restore"
        former = (await get(first, ""))["line"]
        one, changed, other, _ = await gathered(
            [
                first.post("/v1/work/retry", json={"layer": "memos", "chat_id": "c"}),
                _after_reads(second, round_ % 6, f"{CHAT}{change}"),
                third.post("/v1/work/retry"),
                fourth.post(f"/v1/work/{single}/retry"),
            ]
        )
        assert changed.status_code in (200, 201)
        retried += ok(one, 200)["retried"] + ok(other, 200)["retried"]
        async with database.raw() as connection:
            awake = await connection.fetch(
                """
                SELECT c.line_status, count(*) FILTER (WHERE w.run_after < 'infinity') AS awake, count(*) AS items
                FROM work w JOIN chats c ON (c.chat_key, c.line_id) = (w.owner_key, w.line_id)
                WHERE c.chat_key = $1 AND w.layer = 'memos' GROUP BY c.line_id, c.line_status
                """,
                chat,
            )
        for line in awake:
            assert line["items"] == 8
            assert line["awake"] == (8 if line["line_status"] == "current" else 0), (round_, line)
    assert retried > 0


async def _after_reads(client: httpx.AsyncClient, reads: int, path: str) -> httpx.Response:
    """Post to `path` after some reads, so that it comes earlier or later than what runs beside it."""
    for _ in range(reads):
        await client.get("/v1/work", params={"limit": 1})
    return await client.post(path)
