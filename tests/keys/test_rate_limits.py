"""Keys and tokens that send too many requests are refused for a while, with and without Redis."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from app.keys.rate_limiter import AWAY_S
from app.kit.clock import SteppedClock
from app.kit.settings import Settings
from app.local.running import Urls
from app.main import create_app
from tests.conftest import client_of
from tests.talk import append, ok, said

BURST = 4
NOWHERE = "redis://127.0.0.1:1/0"

Connect = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def connect(database_url: str, clock: SteppedClock, key: str) -> AsyncIterator[Connect]:
    """Make a client of a new process of the service, with settings."""
    async with AsyncExitStack() as stack:

        async def start(credential: str = key, **settings: Any) -> httpx.AsyncClient:
            given: dict[str, Any] = {"rate_limit_burst_s": BURST, "rate_limit_token": 1} | settings
            app = create_app(Settings(database_url=database_url, _env_file=None, **given), clock=clock)
            stack.push_async_callback(app.state.database.close)
            stack.push_async_callback(app.state.rate_limiter.close)
            return await stack.enter_async_context(client_of(app, credential))

        yield start


async def token_of(api: httpx.AsyncClient, user_id: str = "mira") -> str:
    wanted = {"user_id": user_id, "scopes": ["read", "write"], "ttl_s": 3_600}
    token: str = ok(await api.post("/v1/tokens", json=wanted), 201)["token"]
    return token


async def statuses(api: httpx.AsyncClient, count: int) -> list[int]:
    return [(await api.get("/v1/chats/c/context")).status_code for _ in range(count)]


@pytest.fixture
async def token(api: httpx.AsyncClient) -> str:
    await append(api, [said(1)])
    ok(await api.put("/v1/chats/c", json={"user_id": "mira"}), 200)
    return await token_of(api)


async def test_a_token_may_send_a_burst_then_its_rate(connect: Connect, token: str, clock: SteppedClock) -> None:
    browser = await connect(token)
    assert await statuses(browser, BURST) == [200] * BURST
    refused = await browser.get("/v1/chats/c/context")
    assert ok(refused, 429)["code"] == "rate_limited"
    assert refused.headers["retry-after"] == "1"
    clock.step(1)
    assert await statuses(browser, 2) == [200, 429]


async def test_every_request_counts(connect: Connect, token: str) -> None:
    browser = await connect(token)
    for method, path in (("GET", "/v1/chats"), ("DELETE", "/v1/users/ren"), ("GET", "/v1/tools")):
        await browser.request(method, path)
    await browser.post("/v1/chats/c/messages", json={})
    assert await statuses(browser, 1) == [429]


async def test_a_new_token_does_not_reset_the_limit(connect: Connect, token: str, api: httpx.AsyncClient) -> None:
    browser = await connect(token)
    await statuses(browser, BURST)
    browser.headers["Authorization"] = f"Bearer {await token_of(api)}"
    assert await statuses(browser, 1) == [429]
    browser.headers["Authorization"] = f"Bearer {await token_of(api, 'ren')}"
    assert await statuses(browser, 1) == [404]


async def test_keys_have_a_limit_only_if_one_is_set(connect: Connect, token: str) -> None:
    assert await statuses(await connect(), 2 * BURST) == [200] * 2 * BURST
    assert await statuses(await connect(rate_limit_key=0.5), 3) == [200, 200, 429]


async def test_zero_is_no_limit(connect: Connect, token: str) -> None:
    assert await statuses(await connect(token, rate_limit_token=0), 2 * BURST) == [200] * 2 * BURST


async def test_processes_share_the_buckets_in_redis(connect: Connect, token: str, servers: Urls) -> None:
    slow = {"redis_url": servers.redis_url, "rate_limit_token": 0.001, "rate_limit_burst_s": 3_000}
    one, other = await connect(token, **slow), await connect(token, **slow)
    assert await statuses(one, 2) + await statuses(other, 2) == [200, 200, 200, 429]
    assert 0 < int((await one.get("/v1/chats/c/context")).headers["retry-after"]) <= 1_000


async def test_without_redis_each_process_has_a_bucket(
    connect: Connect, token: str, clock: SteppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    browser = await connect(token, redis_url=NOWHERE)
    assert await statuses(browser, BURST + 1) == [*[200] * BURST, 429]
    asked = [record for record in caplog.records if "Redis is not reachable" in record.message]
    assert len(asked) == 1
    clock.step(AWAY_S)
    assert await statuses(browser, 1) == [200]


async def test_only_changes_of_redis_are_logged(
    connect: Connect, token: str, clock: SteppedClock, servers: Urls, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "app.keys")
    browser = await connect(token, redis_url=servers.redis_url, rate_limit_token=1_000)
    redis: Redis = Redis.from_url(servers.redis_url)

    def logged() -> list[tuple[str, str]]:
        return [
            (one.levelname, one.message.split(" (")[0]) for one in caplog.records if one.name.startswith("app.keys")
        ]

    try:
        assert await statuses(browser, 2) == [200, 200]
        assert logged() == []
        await redis.client_pause(600_000, all=False)
        for _ in range(3):
            assert {
                one.status_code for one in await asyncio.gather(*[browser.get("/v1/chats") for _ in range(20)])
            } == {200}
            clock.step(AWAY_S)
        assert logged() == [("WARNING", "Redis is not reachable")]
        await redis.client_unpause()
        assert await statuses(browser, 2) == [200, 200]
        assert logged()[1:] == [("INFO", "Redis is reachable again; the processes share their limits")]
    finally:
        await redis.client_unpause()
        await redis.aclose()


async def test_a_wrong_key_uses_up_no_requests(connect: Connect, key: str) -> None:
    client = await connect(rate_limit_key=0.25)
    client.headers["Authorization"] = f"Bearer {key[:-1]}{'0' if key[-1] != '0' else '1'}"
    assert await statuses(client, 3) == [401] * 3
    client.headers["Authorization"] = f"Bearer {key}"
    assert await statuses(client, 2) == [404, 429]


async def test_guessed_keys_do_not_hold_up_a_known_one(connect: Connect, clock: SteppedClock) -> None:
    """Lookups of unknown keys wait for connections among themselves."""
    api = await connect(database_pool=2, max_waiting_per_tenant=1)
    ok(await api.get("/v1/presets"), 200)
    clock.step(60)  # the key is looked up again
    guesses = [
        asyncio.create_task(api.get("/v1/presets", headers={"Authorization": f"Bearer mb_{number:012x}_{'a' * 64}"}))
        for number in range(60)
    ]
    await asyncio.sleep(0)
    ok(await api.get("/v1/presets"), 200)
    assert {answer.status_code for answer in await asyncio.gather(*guesses)} <= {401, 429}
