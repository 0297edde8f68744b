"""The API as a process of its own, as hostile clients see it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from app.local.address import free_port
from app.local.running import Urls
from app.main import MAX_BODY_BYTES
from tests.conftest import PROJECT
from tests.local.conftest import eventually
from tests.slowness import ALLOCATOR
from tests.web.serving import Client, get, post

JSON = "Content-Type: application/json"


@pytest.fixture
def port(key: str, service: int) -> int:
    """The port of an API with short deadlines, on a database with a key."""
    return service


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, database_url: str, servers: Urls) -> AsyncIterator[int]:
    """The port of the API, which the tests share."""
    folder = tmp_path_factory.mktemp("api")
    port = free_port("127.0.0.1", 0)
    environment = {
        **ALLOCATOR,
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(PROJECT),
        "MEMOBOOK_DATABASE_URL": database_url,
        "MEMOBOOK_REDIS_URL": servers.redis_url,
        "MEMOBOOK_HEAD_TIMEOUT_S": "0.5",
        "MEMOBOOK_BODY_TIMEOUT_S": "2",
        "MEMOBOOK_MAX_CONNECTIONS": "10",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", "api", "--port", str(port)),
        cwd=folder,
        env=environment,
    )

    async def answers() -> bool:
        assert process.returncode is None
        async with httpx.AsyncClient(trust_env=False) as client:
            try:
                return (await client.get(f"http://127.0.0.1:{port}/healthz")).is_success
            except httpx.TransportError:
                return False

    try:
        await eventually(answers)
        yield port
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield client
    finally:
        client.writer.transport.abort()


async def test_limits_and_deadlines_of_the_settings_hold(port: int, key: str) -> None:
    async with connected(port) as client:
        await client.send(b"GET /healthz HTTP/1.1\r\n")
        assert (await client.answer()).problem["detail"] == "The headers must arrive within 0.5 seconds."
    async with connected(port) as client:
        await client.send(get("/healthz?" + "a" * 16 * 1024))
        assert (await client.answer()).status == 414
    async with connected(port) as client:
        await client.send(post("/v1/chats/c/messages", f"Authorization: Bearer {key}", JSON, "Content-Length: 9"))
        assert (await client.answer()).problem["detail"] == "The body must arrive within 2 seconds."


async def test_half_requests_do_not_keep_others_out(port: int) -> None:
    half = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
    async with connected(port) as client:
        await client.send(get("/healthz"))
        assert (await client.answer()).status == 200
    for _, writer in half:
        writer.transport.abort()


async def test_a_body_is_refused_before_it_is_sent(port: int, key: str) -> None:
    for headers, status in (
        (["Content-Length: 8000000"], 401),
        (["Transfer-Encoding: chunked"], 401),
        ([f"Authorization: Bearer {key}", f"Content-Length: {MAX_BODY_BYTES + 1}"], 413),
    ):
        async with connected(port) as client:
            await client.send(post("/v1/chats/c/messages", JSON, "Expect: 100-continue", *headers))
            assert (await client.answer()).problem["status"] == status


async def test_a_body_in_chunks_may_have_eight_mebibytes(port: int, key: str) -> None:
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    for end, status in ((b"0\r\n\r\n", 422), (b"1\r\n \r\n0\r\n\r\n", 413)):
        async with connected(port) as client:
            await client.send(
                post("/v1/chats/c/messages", JSON, f"Authorization: Bearer {key}", "Transfer-Encoding: chunked")
            )
            await client.send(chunk * 8 + end)
            assert (await client.answer()).problem["status"] == status
