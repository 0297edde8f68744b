"""Imports: what makes a chat, what is refused, and that nothing is left of what is refused or interrupted."""

import asyncio
import json
import os
import resource
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psutil
import pytest
from fastapi import FastAPI

from app.chats.chat_lock import ChatRef
from app.chats.errors import ChatNotFound
from app.kit.db import Connection, Database
from app.kit.ids import chat_key
from app.kit.settings import Settings
from app.main import create_app
from app.transfer.file_formats import FILE_FORMATS
from tests.background import holding
from tests.conftest import PROJECT, client_of
from tests.slowness import ALLOCATOR
from tests.talk import Json, append, get, ok, talk
from tests.transfer.files import export_file, import_file, make_file
from tests.worker_processes import until

MESSAGE: Json = {"id": "m1", "role": "user", "content": "Hello?"}
LINE = make_file(MESSAGE)


@pytest.fixture
async def small(database_url: str, key: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that takes files of 4 KiB."""
    app = create_app(Settings(database_url=database_url, max_import_bytes=4_096, _env_file=None))
    async with client_of(app, key) as client:
        yield client
    await app.state.database.close()


async def count_rows(connection: Connection, tenant: str, chat_id: str = "c") -> int:
    """How many rows there are of a chat."""
    tables = await connection.fetch(
        "SELECT table_name FROM information_schema.columns WHERE column_name = 'chat_key' AND table_schema = 'public'"
    )
    counted = [
        await connection.fetchval(f'SELECT count(*) FROM "{table}" WHERE chat_key = $1', chat_key(tenant, chat_id))
        for (table,) in tables
    ]
    return sum(counted)


@pytest.mark.parametrize(
    ("file", "detail"),
    [
        (LINE.decode().encode("utf-16"), "line 1: must be UTF-8; the file is UTF-16"),
        (LINE.decode().encode("utf-16-le"), "line 1: must be UTF-8; the file is UTF-16 or UTF-32, or not text"),
        (LINE.decode().encode("utf-32"), "line 1: must be UTF-8; the file is UTF-32"),
        (LINE + '{"role": "user", "content": "Grüße"}'.encode("latin-1"), "line 2: must be UTF-8; byte 32 of the line"),
        (LINE + b'{"role": "user", "content": "a\\u0000"}', "line 2: must not contain NUL characters"),
        (LINE + b'{"role": "user", "content": "a", "b": "\\u0000"}', "line 2: must not contain NUL characters"),
        (b'{"role": "user", "content": "a\x00b"}', "line 1: not JSON at column"),
        (b'{"role": "user", "content": "\\ud800"}', "line 1: not JSON at column"),
        (b'{"role": "user", "content": "a", "b": %s}' % (b"[" * 300 + b"]" * 300), "line 1: must not be nested deeper"),
        (b"[" * 100_000, "line 1: not JSON at column"),
        (
            LINE + b'{"role": "user", "content": "a", "b": [18446744073709551616]}',
            "line 2: must not contain integers of",
        ),
        (LINE + b'{"role": "user", "content": "a", "b": -9223372036854775809}', "line 2: must not contain integers of"),
        (b'{"chat": {"metadata": {"a": 1%s1}}}' % (b"0" * 299), "line 1: must not contain integers of more than 64"),
        (b'{"chat": {"metadata": {"a": 1%s}}}' % (b"0" * 309), "line 1: "),
        (b'{"role": "user", "content": "' + b"a" * 9_000_000 + b'"}', "line 1: must be at most 8388608 bytes long"),
        (b'{"role": "user", "content": "' + b"a" * 100_001 + b'"}', "line 1: content: must have at most 100000"),
        (b"\n" * 200_001, "line 200001: the file must have at most 200000 lines"),
        (LINE + LINE, "line 2: id: 'm1' is on an earlier line too; must be unique"),
        (LINE + b'{"role": "nobody", "content": "a"}', "line 2: role: "),
        (LINE + b"[]", "line 2: must be a JSON object"),
        (LINE + b'{"content": ""}', "line 2: role: is required"),
        (b'{"chat": []}', "line 1: chat: must be a JSON object"),
        (b'{"chat": {"time_zone": "Mars"}}', "line 1: time_zone: "),
        (b'{"chat": {"settings": {"preset": "none"}}}', "line 1: settings.preset: "),
        (b'\n\n{"chat": {"time_zone": "Mars"}}', "line 3: time_zone: "),
        (
            b'\n{"chat": {"characters": [{"name": "Kai"}, {"name": "Ava", "aliases": ["Kai"]}]}}',
            "line 2: characters: must not have a name that is a former name of another character",
        ),
    ],
    ids=range(26),
)
async def test_a_broken_file_is_refused_and_leaves_nothing(
    api: httpx.AsyncClient, connection: Connection, tenant: str, file: bytes, detail: str
) -> None:
    problem = await import_file(api, file, status=422)
    assert problem["code"] == "invalid_file"
    assert problem["detail"].startswith(detail), problem["detail"]
    assert "\n" not in problem["detail"]
    assert len(problem["detail"]) < 300
    assert await count_rows(connection, tenant) == 0


async def test_a_byte_order_mark_of_utf_8_is_ignored(api: httpx.AsyncClient) -> None:
    await import_file(api, b"\xef\xbb\xbf" + LINE)
    assert [one["content"] for one in (await get(api, "/messages"))["items"]] == ["Hello?"]


@pytest.mark.parametrize("name", ["jsonl", "sillytavern", "transcript"])
async def test_large_numbers_come_back_as_they_were(api: httpx.AsyncClient, name: str) -> None:
    said = b'"content":"a"' if name != "sillytavern" else b'"mes":"a","is_user":true'
    others = b'"role":"user",' if name != "sillytavern" else b'"name":"Mira",'
    numbers = b'"more":{"a":[18446744073709551615,-9223372036854775808],"b":1e+300,"c":"99999999999999999999 1.5"}'
    await import_file(api, b"{" + others + said + b"," + numbers + b"}\n", file_format=name)
    assert numbers in await export_file(api, file_format=name)


async def test_a_file_may_be_empty(api: httpx.AsyncClient) -> None:
    assert (await import_file(api, b""))["counters"]["messages"] == 0


@pytest.mark.parametrize(
    "file",
    [
        b'{"spec": "chara_card_v2", "data": {"name": "Kai"}}',
        b'{"name": "Kai", "first_mes": "Hello.", "create_date": "2026-03-01"}',
        b'{"char_name": "Kai", "char_greeting": "Hello."}',
        b'{"name": "Kai", "create_date": "2026-03-01", "data": {"first_mes": "Hello."}}',
        b'{"entries": {}}',
        b'{"temperature": 1, "prompts": []}',
        b'{"role": "user", "content": "Hello."}',
        b"{}",
    ],
)
async def test_another_file_of_sillytavern_is_refused(api: httpx.AsyncClient, file: bytes) -> None:
    problem = await import_file(api, file, file_format="sillytavern", status=422)
    assert "neither a message nor the header" in problem["detail"]
    assert (await api.get("/v1/chats/c")).status_code == 404


@pytest.mark.parametrize(
    "header", [b'{"create_date": "2026-03-01", "note": 1}', b'{"user_name": "Mira", "entries": 2}']
)
async def test_a_header_may_have_other_fields(api: httpx.AsyncClient, header: bytes) -> None:
    file = header + b'\n{"name": "Kai", "is_user": false, "mes": "Hello."}\n'
    assert (await import_file(api, file, file_format="sillytavern"))["counters"]["messages"] == 1
    exported = json.loads((await export_file(api, file_format="sillytavern")).splitlines()[0])
    assert exported.items() >= json.loads(header).items()


async def test_a_large_number_that_stays_the_same_is_accepted(api: httpx.AsyncClient) -> None:
    """PostgreSQL writes 1e25 with 25 zeros, and so does `transcript.jsonl` in a vault."""
    number = b"1" + b"0" * 25
    file = b'{"role": "user", "content": "Hello.", "metadata": {"a": 100000000000000000000, "b": -%s}}' % number
    await import_file(api, file)
    (message,) = (await api.get("/v1/chats/c/messages")).json()["items"]
    assert message["metadata"] == {"a": 1e20, "b": -1e25}


async def test_a_chat_that_exists_is_not_changed(api: httpx.AsyncClient) -> None:
    await append(api, talk(1, 2))
    before = await export_file(api)
    problem = await import_file(api, LINE, status=409)
    assert problem["code"] == "chat_taken"
    assert await export_file(api) == before


async def test_an_unknown_format_is_refused(api: httpx.AsyncClient) -> None:
    problem = await import_file(api, LINE, file_format="csv", status=422)
    assert problem["errors"][0] == {
        "loc": ["query", "format"],
        "msg": "must be one of sillytavern, jsonl, transcript, vault",
    }


async def test_a_file_that_is_too_large_is_refused(small: httpx.AsyncClient, api: httpx.AsyncClient) -> None:
    assert "4096 bytes" in (await import_file(small, b" " * 4_097, status=413))["detail"]
    await import_file(small, LINE)
    large = make_file({"id": "a", "role": "user", "content": "a", "more": "b" * 7_000_000}) * 2
    problem = await import_file(api, large, "d", status=422)  # above the limit of other bodies, so it was read
    assert problem["detail"].startswith("line 2: id")


async def test_an_endless_body_is_read_up_to_the_limit(small: httpx.AsyncClient) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1_024
            yield b"a" * 1_024

    query = {"format": "jsonl", "chat_id": "c"}
    ok(await small.post("/v1/import", params=query, content=endless()), 413)
    assert sent <= 8_192


async def test_the_memory_of_an_import_is_bounded(api: httpx.AsyncClient) -> None:
    line = make_file({"role": "user", "content": "a", "more": "b" * 1_000_000})
    await import_file(api, line, "warm")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    problem = await import_file(api, line * 50 + b"[]", status=422)
    assert problem["detail"] == "line 51: must be a JSON object"
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1_024
    assert grown_mib < 130, "the body of 50 MB is in this process, but its lines are not"


async def test_long_lines_are_inserted_in_small_batches(
    api: httpx.AsyncClient, connection: Connection, tenant: str
) -> None:
    await import_file(api, make_file({"role": "user", "content": "a", "more": "b" * 2_000_000}) * 7)
    of_a_statement = "SELECT count(*) FROM source_lines WHERE chat_key = $1 GROUP BY cmin::text ORDER BY min(seq)"
    batches = [count for (count,) in await connection.fetch(of_a_statement, chat_key(tenant, "c"))]
    assert batches == [3, 3, 1], "a batch of more than 4 MiB ends"


async def test_only_two_files_are_read_at_once(app: FastAPI, api: httpx.AsyncClient) -> None:
    slots = app.state.import_slots
    with slots.taken(), slots.taken():
        answer = await api.post("/v1/import", params={"format": "jsonl", "chat_id": "c"}, content=LINE)
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_imports")
        assert answer.headers["retry-after"] == "5"
    await import_file(api, LINE)


async def test_a_token_imports_only_what_it_may_write(app: FastAPI, api: httpx.AsyncClient) -> None:
    async def token(**limits: str) -> str:
        body = {"scopes": ["read", "write"], "ttl_s": 60, **limits}
        made: str = ok(await api.post("/v1/tokens", json=body), 201)["token"]
        return made

    async with client_of(app, await token(chat_id="d")) as limited:
        await import_file(limited, LINE, "c", status=404)
        await import_file(limited, LINE, "d")
    async with client_of(app, await token(user_id="mira")) as limited:
        assert (await import_file(limited, LINE, "e"))["user_id"] == "mira"
        ren = make_file({"chat": {"user_id": "ren"}}, MESSAGE)
        problem = await import_file(limited, ren, "f", status=404)
        assert problem["detail"].startswith("This token is limited to a user.")
    await get(api, "/context", 404)


async def test_the_words_of_an_import_wait_as_those_of_appends_do(api: httpx.AsyncClient) -> None:
    """The same memos are due, of the messages that are not hidden."""
    lines = [one | {"hidden": n % 10 == 0, "excluded": n % 15 == 0} for n, one in enumerate(talk(1, 1_200), 1)]
    made = await import_file(api, make_file({"chat": {"settings": {"preset": "memo"}}}, *lines))
    memos = (await get(api, "/memos", limit=500))["items"]
    assert made["counters"]["messages"] == 1_200
    eligible = [n for n in range(1, 1_201) if n % 10 and n % 15]
    assert [memo["last_seq"] for memo in memos] == eligible[7::8]


async def test_a_killed_import_leaves_nothing(
    database: Database, database_url: str, tenant: str, tmp_path: Path, connection: Connection
) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_bytes(make_file(*talk(1, 600), {"role": "user", "content": "a", "swipes": ["a", "b"]}))
    command = ["import", str(path), "--format", "jsonl", "--tenant", tenant, "--chat-id", "c"]
    environment = {**ALLOCATOR, "PATH": os.environ["PATH"], "MEMOBOOK_DATABASE_URL": database_url}
    async with holding(database_url, "LOCK TABLE swipes IN SHARE MODE"):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "app.cli", *command, env=environment, cwd=PROJECT
        )
        waits = (
            "EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            " AND query LIKE '%INSERT INTO swipes%' AND $1::uuid IS NOT NULL)"
        )
        await until(database, tenant, waits)
        psutil.Process(process.pid).kill()
        await process.wait()
    await until(database, tenant, waits.replace("EXISTS", "NOT EXISTS"))
    assert await count_rows(connection, tenant) == 0


async def test_an_export_of_an_erased_chat_does_not_look_complete(
    api: httpx.AsyncClient, database: Database, tenant: str
) -> None:
    for first in (1, 31, 61):  # more than a page of 4 MiB
        await append(api, [one | {"content": "a" * 90_000} for one in talk(first, first + 29)])
    parts = await FILE_FORMATS["jsonl"].write(database, ChatRef(tenant, "c", chat_key(tenant, "c")), None)
    assert (await anext(parts)).startswith(b'{"chat":')
    await anext(parts)
    ok(await api.delete("/v1/chats/c"), 204)
    with pytest.raises(ChatNotFound):
        _ = [part async for part in parts]
