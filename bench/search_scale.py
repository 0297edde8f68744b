"""How fast a search is in a long chat, over all chats of a user, and beside the rows of other users.

    python -m bench.search_scale --locomo locomo10.json [--others 100] [--vectors with] [--appends]

One chat of LONG messages is stored over HTTP, and the worker indexes it and gives it vectors. The other chats are
copies of its rows, made by SQL: ten more of the same user, and `--others` chats of other users. The questions of LoCoMo
are then asked over HTTP, one after the other, each with `limit` 10. Vectors are those of the local embedding model. A
server in this process has computed those of the questions before and answers at once, so the times leave them out.

With `--appends`, a client appends to short chats instead, beside another one that appends 100 messages a second to a
chat. In turn, the worker puts these into the index of words, and is stopped.
"""

import argparse
import asyncio
import os
import signal
import socket
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any
from uuid import UUID, uuid4

import httpx
import orjson
import uvicorn

from app.embeddings.local import LocalEmbedder
from app.kit.auth import DEFAULT_TENANT
from app.kit.db import Connection
from app.kit.ids import chat_key, user_key
from app.kit.owners import CHAT_WIDE
from app.local.leftovers import PidFile
from app.local.stack import Stack
from app.passages.keys import hash_keys, list_keys
from bench.locomo import Conversation, add_locomo_option, read_locomo
from bench.processes import say
from bench.search import FIRST, LONG, SETTINGS, until_indexed
from bench.stage import connected, make_key, serving

OWN = 11
"""The chats of the user."""

_USER = "reader"
_SEARCHES = 200
_BATCH = 500
_APPENDS = 600
_PAUSE_S = 0.02
_TURNS = 4
_FEED = 2_000
_FEED_BATCH = 20
_FEED_RATE = 100


class Vectors:
    """A server of embeddings in the form of OpenAI's that remembers the vector of each text."""

    def __init__(self) -> None:
        self._embedder = LocalEmbedder()
        self._known: dict[str, list[float]] = {}

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts; each is computed once."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            made = await self._embedder.embed(missing)
            self._known |= {
                text: [float(one) for one in vector] for text, vector in zip(missing, made.vectors, strict=True)
            }
        return [self._known[text] for text in texts]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event["body"], event.get("more_body", False)
        vectors = await self.embed(orjson.loads(body)["input"])
        data = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        answer = orjson.dumps({"data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}})
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


@asynccontextmanager
async def _listening(vectors: Vectors) -> AsyncGenerator[str]:
    # With the protocol named, asyncio sets TCP_NODELAY: otherwise each answer waits 40 ms for an acknowledgement.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(vectors, log_level="error", lifespan="off"))
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            await task


async def copy_chats(connection: Connection, source: str, copies: Sequence[tuple[str, str]]) -> None:
    """Copy the rows of a chat with a single line to chats of users (chat id, user id), with an index of their own."""
    of = chat_key(DEFAULT_TENANT, source)
    texts = [
        (row["message_id"], row["digest"], list_keys(row["content"]))
        for row in await connection.fetch("SELECT message_id, digest, content FROM messages WHERE chat_key = $1", of)
    ]
    for chat_id, user_id in copies:
        key = chat_key(DEFAULT_TENANT, chat_id)
        given = {"chat_id": chat_id, "user_id": user_id, "user_key": user_key(DEFAULT_TENANT, user_id)}
        for table in ("chats", "messages", "vectors", "text_vectors"):
            await _copy_rows(connection, table, of, key, given if table == "chats" else {})
        records = [(key, CHAT_WIDE, name, digest, hash_keys(key, keys)) for name, digest, keys in texts]
        await connection.copy_records_to_table("passages", records=records)


async def _copy_rows(connection: Connection, table: str, of: UUID, key: UUID, given: dict[str, Any]) -> None:
    """Copy the rows of a table to another chat; the cursors of a chat name its key."""
    columns = [
        row["attname"]
        for row in await connection.fetch(
            "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped",
            table,
        )
    ]
    values = {"chat_key": "$2::uuid", "cursors": "replace(cursors::text, $1::uuid::text, $2::uuid::text)::jsonb"} | {
        name: f"${at}" for at, name in enumerate(given, start=3)
    }
    selected = ", ".join(values.get(column, column) for column in columns)
    query = f"INSERT INTO {table} ({', '.join(columns)}) SELECT {selected} FROM {table} WHERE chat_key = $1::uuid"
    await connection.execute(query, of, key, *given.values())


async def time_searches(client: httpx.AsyncClient, path: str, queries: Sequence[str]) -> tuple[float, float]:
    """Return the median and the 95th percentile of the times of searches for FIRST results, in milliseconds."""
    times = []
    for query in queries:
        begun = time.perf_counter()
        body = {"query": query, "limit": FIRST}
        (await client.post(f"{path}/memories/search", json=body)).raise_for_status()
        times.append(1000 * (time.perf_counter() - begun))
    return median(times), quantiles(times, n=20)[18]


async def time_appends(client: httpx.AsyncClient, chats: Sequence[str], said: Sequence[Any]) -> list[float]:
    """Return the times of appends of one message, about 40 a second, in milliseconds."""
    times = []
    for at in range(_APPENDS):
        message = {**said[at % len(said)], "id": str(uuid4())}
        begun = time.perf_counter()
        answer = await client.post(f"/v1/chats/{chats[at % len(chats)]}/messages", json={"messages": [message]})
        answer.raise_for_status()
        times.append(1000 * (time.perf_counter() - begun))
        await asyncio.sleep(_PAUSE_S)
    return times


async def _store(client: httpx.AsyncClient, chat_id: str, said: Sequence[Any], count: int) -> None:
    for first in range(0, count, _BATCH):
        messages = [{**said[at % len(said)], "id": f"m{at}"} for at in range(first, min(first + _BATCH, count))]
        (await client.post(f"/v1/chats/{chat_id}/messages", json={"messages": messages})).raise_for_status()


async def _measure_searches(
    stack: Stack, client: httpx.AsyncClient, conversations: Sequence[Conversation], vectors: Vectors | None, others: int
) -> list[str]:
    said = [message for conversation in conversations for message in conversation.appendable()]
    questions = [question.text for conversation in conversations for question in conversation.questions]
    queries = Random(1).sample(questions, _SEARCHES)
    if vectors:
        await vectors.embed(queries)
    settings = {**SETTINGS, "search": {"across_chats": True}}
    (await client.put("/v1/chats/own0", json={"user_id": _USER, "settings": settings})).raise_for_status()
    await _store(client, "own0", said, LONG)
    await until_indexed(client, "/v1/chats/own0")
    rows = []
    name = "with vectors" if vectors else "without vectors"
    async with connected(stack) as connection:
        await copy_chats(connection, "own0", [(f"own{n}", _USER) for n in range(1, OWN)])
        await connection.execute("VACUUM ANALYZE")
        for beside in (0, others):
            if beside:
                say(f"copying {beside} chats of others")
                await copy_chats(connection, "own0", [(f"other{n}", f"user{n // 10}") for n in range(beside)])
                await connection.execute("VACUUM ANALYZE")
            for path, what in (("/v1/chats/own0", f"{LONG:,}"), (f"/v1/users/{_USER}", f"{OWN * LONG:,}")):
                await time_searches(client, path, queries[:20])
                p50, p95 = await time_searches(client, path, queries)
                rows.append(f"| {name} | {what} | {beside * LONG:,} | {p50:.1f} ms | {p95:.1f} ms |")
                say(rows[-1])
    return rows


async def _feed(client: httpx.AsyncClient, chat_id: str, said: Sequence[Any]) -> None:
    """Append _FEED messages to a chat of its own, _FEED_RATE a second."""
    (await client.put(f"/v1/chats/{chat_id}", json={"settings": SETTINGS})).raise_for_status()
    begun = time.perf_counter()
    for first in range(0, _FEED, _FEED_BATCH):
        await asyncio.sleep(max(0.0, begun + first / _FEED_RATE - time.perf_counter()))
        messages = [{**said[at % len(said)], "id": f"m{at}"} for at in range(first, first + _FEED_BATCH)]
        (await client.post(f"/v1/chats/{chat_id}/messages", json={"messages": messages})).raise_for_status()


async def _measure_appends(stack: Stack, client: httpx.AsyncClient, conversations: Sequence[Conversation]) -> str:
    """Append beside a feed of other messages, while the worker indexes them and while it is stopped, in turn."""
    said = [message for conversation in conversations for message in conversation.appendable()]
    chats = [f"short{n}" for n in range(20)]
    for chat in chats:
        (await client.put(f"/v1/chats/{chat}", json={"settings": SETTINGS})).raise_for_status()
    found = PidFile.of(stack.directory, "worker").find()
    assert found is not None
    worker = found[0].pid
    times: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(_TURNS):
        for is_stopped in (True, False):
            feed = f"feed{turn}-{is_stopped}"
            if is_stopped:
                os.kill(worker, signal.SIGSTOP)
            try:
                feeding = asyncio.create_task(_feed(client, feed, said))
                times[is_stopped] += await time_appends(client, chats, said)
                await feeding
            finally:
                os.kill(worker, signal.SIGCONT)
            for chat in (feed, *chats):
                await until_indexed(client, f"/v1/chats/{chat}")
    stopped, indexing = (quantiles(times[one], n=20)[18] for one in (True, False))
    return (
        f"appends p95 beside {_FEED_RATE} messages/s: {stopped:.1f} ms with a stopped worker, {indexing:.1f} ms while "
        f"it puts them into the index, {indexing / stopped:.2f}"
    )


async def run(path: Path, others: int, *, with_vectors: Sequence[bool], appends: bool) -> str:
    """Measure searches, with vectors and without, or appends, and return the results as Markdown."""
    conversations = list(read_locomo(path))
    lines = ["| | messages searched | of others | p50 | p95 |", "|---|--:|--:|--:|--:|"]
    vectors = Vectors()
    async with _listening(vectors) as url:
        model = {"MEMOBOOK_EMBEDDINGS_BASE_URL": url, "MEMOBOOK_EMBEDDINGS_MODEL": "all-MiniLM-L6-v2"}
        for is_hybrid in with_vectors:
            async with _serving(model if is_hybrid else {}) as (stack, client):
                if appends:
                    return await _measure_appends(stack, client, conversations)
                lines += await _measure_searches(stack, client, conversations, vectors if is_hybrid else None, others)
    return "\n".join(lines)


@asynccontextmanager
async def _serving(environment: Mapping[str, str]) -> AsyncGenerator[tuple[Stack, httpx.AsyncClient]]:
    with tempfile.TemporaryDirectory() as directory:
        async with serving(Path(directory), environment) as stack:
            headers = {"Authorization": f"Bearer {await make_key(stack)}"}
            async with httpx.AsyncClient(base_url=stack.url, headers=headers, timeout=600) as client:
                yield stack, client


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.search_scale", description="How fast searches are")
    add_locomo_option(parser)
    parser.add_argument("--others", type=int, default=100, help=f"chats of others, of {LONG:,} messages each")
    parser.add_argument("--vectors", choices=["with", "without"], help="measure only searches with, or without vectors")
    parser.add_argument("--appends", action="store_true", help="measure appends beside the index of words")
    options = parser.parse_args()
    with_vectors = [False, True] if options.vectors is None else [options.vectors == "with"]
    say(asyncio.run(run(options.locomo, options.others, with_vectors=with_vectors, appends=options.appends)))


if __name__ == "__main__":
    main()
