"""Notifications of workers through Redis, which are dropped without blocking if Redis is down."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress

import pytest
from redis.asyncio import Redis

from app.kit.worker_notifier import WAKE, WorkerNotifier
from app.local.running import Urls
from tests.scripted_model import Tally
from tests.slowness import SLOWNESS

PATIENCE_S = 10 * SLOWNESS

QUEUE = "arq:queue"


@pytest.fixture
async def redis(servers: Urls) -> AsyncIterator[Redis]:
    """A database of the Redis server in which nothing is queued."""
    async with Redis.from_url(servers.redis_url) as client:
        await client.flushdb()
        yield client
        await client.flushdb()


@asynccontextmanager
async def notifying(notifier: WorkerNotifier) -> AsyncIterator[None]:
    """The notifier's own task, as an application runs it."""
    task = asyncio.create_task(notifier.run())
    try:
        yield
        assert not task.done(), "the notifier stopped"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await notifier.close()


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def impostor(answer: Answer, path: str | None = None) -> AsyncIterator[tuple[str, Tally]]:
    """Yield the URL of a server that is not Redis, on the socket `path` if given, and its number of connections."""
    connected = Tally()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.add()
        with suppress(ConnectionError), closing(writer):
            await answer(reader, writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    if path is None:
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    else:
        server = await asyncio.start_unix_server(accept, path)
        url = f"unix://{path}"
    async with server:
        yield url, connected
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def says_nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    while await reader.read(1_024):
        pass


async def hangs_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    pass


async def talks_rubbish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1_024):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def take_job(redis: Redis) -> bytes:
    """Wait for a job and take it from the queue, as a worker does."""
    taken = await redis.bzpopmin(QUEUE, timeout=PATIENCE_S)
    assert taken is not None
    job: bytes | None = await redis.get(b"arq:job:" + taken[1])
    assert job is not None
    return job


async def test_a_notification_is_a_job_that_wakes_a_worker(servers: Urls, redis: Redis) -> None:
    notifier = WorkerNotifier(servers.redis_url)
    async with notifying(notifier):
        notifier.notify()
        assert f'"{WAKE}"'.encode() in await take_job(redis)


async def test_a_notification_before_the_start_is_sent_afterwards(servers: Urls, redis: Redis) -> None:
    notifier = WorkerNotifier(servers.redis_url)
    notifier.notify()
    async with notifying(notifier):
        await take_job(redis)


async def test_each_burst_of_notifications_is_one_job(servers: Urls, redis: Redis) -> None:
    notifier = WorkerNotifier(servers.redis_url)
    async with notifying(notifier):
        for _ in range(1_000):
            notifier.notify()
        await take_job(redis)
        assert await redis.zcard(QUEUE) == 0
        notifier.notify()
        await take_job(redis)


async def test_without_a_url_no_notification_is_sent() -> None:
    notifier = WorkerNotifier(None)
    notifier.notify()
    async with asyncio.timeout(PATIENCE_S):
        await notifier.run()
    assert not await notifier.is_reachable()


@pytest.mark.parametrize("answer", [says_nothing, hangs_up, talks_rubbish])
async def test_a_server_that_is_not_redis_is_retried_at_next_notify(answer: Answer) -> None:
    async with impostor(answer) as (url, connected):
        notifier = WorkerNotifier(url)
        async with notifying(notifier):
            for times in (1, 2):
                notifier.notify()
                await connected.reaches(times)


@pytest.mark.parametrize("answer", [says_nothing, hangs_up, talks_rubbish])
async def test_a_server_that_is_no_redis_is_not_reachable(answer: Answer) -> None:
    async with impostor(answer) as (url, _), asyncio.timeout(PATIENCE_S):
        assert not await WorkerNotifier(url).is_reachable()


async def test_redis_is_reachable_when_it_answers(servers: Urls) -> None:
    assert await WorkerNotifier(servers.redis_url).is_reachable()
    assert not await WorkerNotifier("unix:///nowhere/redis.sock").is_reachable()


async def test_notifications_resume_when_redis_is_back() -> None:
    with tempfile.TemporaryDirectory(prefix="redis-", dir="/tmp") as directory:  # a socket's path is short
        path = f"{directory}/redis.sock"
        notifier = WorkerNotifier(f"unix://{path}")
        async with notifying(notifier):
            notifier.notify()
            await asyncio.sleep(0)
            async with impostor(hangs_up, path) as (_, connected):
                for times in (1, 2):
                    notifier.notify()
                    await connected.reaches(times)
