"""After an erasure, no column of any table and no key of Redis has a word of the conversation.

The columns are those of the catalog: one that is added later is searched, too, and has to be filled.
"""

import json
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from fastapi import FastAPI
from redis.asyncio import Redis

from app.kit.db import Connection
from app.kit.ids import chat_key
from app.kit.worker_notifier import WAKE
from app.local.running import Urls
from app.search.recall_memory import AWAY_S
from tests.chats.words_everywhere import count_word, list_columns, read_redis, write_everywhere
from tests.kit.test_worker_notifier import notifying
from tests.layers.sample import Stage
from tests.schema.test_catalog import WITHOUT_WORDS
from tests.talk import ok, put

QUOTES_NOTHING = {("work", "error"), ("chats", "last_cut"), ("chats", "changed")} | {
    (table, "refusals") for table in ("work", "memos", "scenes", "narrative_versions", "consolidations")
}
"""Columns that are filled, but whose words are the service's own."""

_FILLED = """
    SELECT count(error) > 0 AND count(failed_at) > 0 AND count(payload) > 0 AND count(progress) > 0
        AND bool_or(refusals <> '[]') FROM work WHERE owner_key = $1 AND line_id IN (
        SELECT line_id FROM chats WHERE chat_key = $1 AND line_status = $2)"""

_LEARN = "UPDATE teachings SET message_id = 'm1-' || $2, text_hash = decode('00', 'hex') WHERE chat_key = $1"
"""What no request leads to: a job learns from a message."""


@pytest.fixture
def word() -> str:
    """A name that nothing else in the database has."""
    return "Zo" + uuid4().hex.translate(str.maketrans("0123456789", "ghijklmnop"))


@pytest.fixture
async def redis(servers: Urls) -> AsyncIterator[Redis]:
    async with Redis.from_url(servers.redis_url) as client:
        yield client


@pytest.mark.parametrize("paths", [["chats/c", "chats/fork"], ["users/mira-{}"]], ids=["chat", "user"])
async def test_erasing_leaves_no_text_in_the_database(
    stage: Stage, connection: Connection, tenant: str, word: str, paths: list[str]
) -> None:
    await write_everywhere(stage, word)
    await connection.execute(_LEARN, chat_key(tenant, "c"), word)
    for key, status in (("c", "current"), ("c", "checkpoint"), ("fork", "current")):
        assert await connection.fetchval(_FILLED, chat_key(tenant, key), status), (key, status)
    with_words = {
        (table, column)
        for (table, column), is_binary in (await list_columns(connection)).items()
        if not is_binary and column not in WITHOUT_WORDS.get(table, ())
    }
    assert with_words - set(await count_word(connection, word)) == QUOTES_NOTHING
    for path in paths:
        ok(await stage.api.delete(f"/v1/{path.format(word)}"), 204)
    assert await count_word(connection, word) == {}
    keys = [chat_key(tenant, "c"), chat_key(tenant, "fork")]
    assert await connection.fetchval("SELECT count(*) FROM work WHERE owner_key = ANY($1)", keys) == 0


async def test_redis_receives_no_text_of_a_chat(app: FastAPI, stage: Stage, redis: Redis, word: str) -> None:
    await redis.flushdb()
    async with notifying(app.state.notifier):
        await write_everywhere(stage, word)
    await put(stage.api, status=200, settings={"recall": {"mode": "auto"}})
    asked = {"character": f"Kai {word}", "query": "lamp number 7"}
    found: dict[bytes, bytes] = {}
    for _ in range(10):  # while the machine has no time, Redis answers later than a context waits for it
        assert ok(await stage.api.get("/v1/chats/c/context", params=asked), 200)["recalled"]
        found = await read_redis(redis)
        if any(key.startswith(b"memobook:recall:") for key in found):
            break
        stage.clock.step(2 * AWAY_S)
    assert [key for key in found if key.startswith(b"memobook:recall:")]
    jobs = [json.loads(job) for key, job in found.items() if key.startswith(b"arq:job:")]
    assert jobs
    assert [job for job in jobs if (job["f"], job["a"], job["k"]) != (WAKE, [], {})] == []
    assert word not in str(found)
