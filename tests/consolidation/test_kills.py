"""Kill -9 and after: what a killed worker was learning is learnt once by the next one."""

import httpx
import pytest

from app.kit.db import Database
from app.kit.ids import chat_key, user_key
from tests.background import holding, until_waited_for
from tests.book import change, due_rows
from tests.consolidation.learning import begin, fact, learns, memory
from tests.scripted_model import ScriptedModel
from tests.talk import append, get, ok, said
from tests.worker_processes import Workers, kill, until_all_is_made

FERRY = "Mira's brother Tomas works as a ferryman at the harbour."
LENS = "Kai hid the spare lens under the seventh stair."
STORM = "Mira promised Kai to return before the storms of October."
WORDS = {
    5: "My brother Tomas is a ferryman.",
    6: "You are the Captain now.",
    45: "The lens is under the seventh stair.",
    85: "I return before the storms.",
    105: "My brother is a ferryman, remember?",
}
RANGES = [1, 41, 81]


@pytest.fixture(autouse=True)
async def three_ranges(api: httpx.AsyncClient, model: ScriptedModel, nothing_due: None) -> None:
    """An import of three ranges; `nothing_due` comes first. The last one repeats something of the first."""
    model.otherwise = learns(
        {
            "ferryman": lambda n: memory(FERRY, n),
            "lens is": lambda n: memory(LENS, n),
            "storms": lambda n: memory(STORM, n),
            "Captain": lambda n: fact("nickname", "Captain", n),
        }
    )
    await begin(api, memories={"learn_scope": "user"})
    await append(api, [said(n) | ({"content": WORDS[n]} if n in WORDS else {}) for n in range(1, 121)])


async def assert_all_is_learnt_once(api: httpx.AsyncClient, database: Database, tenant: str) -> None:
    async with database.raw() as connection:
        read = "SELECT array_agg(first_seq ORDER BY first_seq) FROM consolidations WHERE chat_key = $1"
        assert await connection.fetchval(read, chat_key(tenant, "c")) == RANGES
        stored = "SELECT count(*) FROM statements WHERE owner_key = $1 AND NOT is_set"
        assert await connection.fetchval(stored, user_key(tenant, "mira")) == 4
    found = (await get(api, "/memories"))["items"]
    assert {one["content"]: sorted(one["sources"]) for one in found} == {
        FERRY: ["message:m105", "message:m5"],
        LENS: ["message:m45"],
        STORM: ["message:m85"],
    }
    (held,) = ok(await api.get("/v1/users/mira/facts"), 200)["items"]
    assert (held["key"], held["value"]) == ("nickname", "Captain")
    assert await due_rows(database, tenant) == []


async def go_on(workers: Workers, database: Database, tenant: str) -> None:
    """Start another worker after the leases of the killed one have ended."""
    assert [row["attempts"] for row in await due_rows(database, tenant, "consolidation")] == [1] * len(RANGES)
    await change(database, tenant, "work", "leased_until = clock_timestamp()")
    await workers.start()
    await until_all_is_made(database, tenant)


async def test_ranges_are_learnt_once_after_a_kill_in_the_call(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel, database: Database, tenant: str
) -> None:
    gate = model.hold(3)
    doomed = await workers.start()
    await gate.reached(3)
    await kill(doomed)
    await go_on(workers, database, tenant)
    await assert_all_is_learnt_once(api, database, tenant)
    assert len(model.calls) == 6


async def test_ranges_are_learnt_once_after_a_kill_before_the_write(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel, database: Database, database_url: str, tenant: str
) -> None:
    lock = f"SELECT 1 FROM chats WHERE chat_key = '{chat_key(tenant, 'c')}' FOR UPDATE"
    async with holding(database_url, lock) as holder:
        doomed = await workers.start()
        await until_waited_for(holder)
        await kill(doomed)
    await go_on(workers, database, tenant)
    await assert_all_is_learnt_once(api, database, tenant)


async def test_ranges_are_learnt_once_after_a_kill_in_the_write(
    api: httpx.AsyncClient, workers: Workers, database: Database, database_url: str, tenant: str
) -> None:
    ok(await api.put("/v1/users/mira/facts/home", json={"value": "Sandoy"}), 201)
    ok(await api.delete("/v1/users/mira/facts/home"), 204)
    lock = f"SELECT 1 FROM scopes WHERE owner_key = '{user_key(tenant, 'mira')}' FOR UPDATE"
    async with holding(database_url, lock) as holder:
        doomed = await workers.start()
        await until_waited_for(holder)  # the range is recorded as read; what was learnt is not stored
        await kill(doomed)
    await go_on(workers, database, tenant)
    await assert_all_is_learnt_once(api, database, tenant)


async def test_ranges_are_learnt_once_after_a_kill_between_ranges(
    api: httpx.AsyncClient, workers: Workers, model: ScriptedModel, database: Database, tenant: str
) -> None:
    gate = model.hold(2)
    doomed = await workers.start()
    await gate.reached(2)
    async with database.raw() as connection:
        while len(await due_rows(database, tenant)) != 2:
            await connection.execute("SELECT pg_sleep(0.02)")
    await kill(doomed)
    await change(database, tenant, "work", "leased_until = clock_timestamp()")
    await workers.start()
    await until_all_is_made(database, tenant)
    await assert_all_is_learnt_once(api, database, tenant)
    assert len(model.calls) == 5
