"""Databases with LC_CTYPE C are replaced by copies that know the letters of all languages."""

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import asyncpg
import pytest

from app.dispatcher import Dispatcher
from app.kit.clock import SteppedClock
from app.kit.job_context import JobContext
from app.kit.settings import Settings
from app.local.conversion import needed_bytes
from app.local.ctype import has_locale
from app.local.errors import LocalError
from app.local.postgres import Postgres
from app.main import create_app
from app.migrate import migrate
from app.registry import LAYERS
from tests.conftest import NOON, client_of
from tests.local.conftest import a_folder, connect, eventually, processes_of, servers_only
from tests.local.former import KNOWN, LETTERS, dump_all, former_postgres
from tests.local.test_up import foreground
from tests.talk import append, put, talk

CONTEXTS = [f"/v1/chats/c/context?format={format}" for format in ("openai", "anthropic", "text")]

NAMES = "SELECT datname AS name, datctype AS ctype FROM pg_database"

ADDED = """
    CREATE ROLE reader LOGIN PASSWORD 'r';
    GRANT SELECT ON messages TO reader;
    COMMENT ON TABLE messages IS 'the log';
    CREATE SEQUENCE counted OWNED BY NONE;
    ALTER SEQUENCE counted OWNER TO memobook;
    SELECT nextval('counted'), nextval('counted');
    REVOKE CONNECT ON DATABASE memobook FROM PUBLIC;
    GRANT CONNECT ON DATABASE memobook TO reader WITH GRANT OPTION;
    ALTER DATABASE memobook SET statement_timeout = '70s';
    ALTER DATABASE memobook SET search_path = "$user", public;
    ALTER ROLE reader IN DATABASE memobook SET work_mem = '8MB';
"""
"""What an operator may have added to the database."""


async def read_contexts(database_url: str, *, say_first: bool = False) -> list[bytes]:
    """The contexts of a chat, which is made first if `say_first`."""
    clock = SteppedClock(NOON)
    app = create_app(Settings(database_url=database_url, _env_file=None), clock=clock)
    async with client_of(app, None) as client:
        if say_first:
            await put(client, "c", settings={"preset": "memo"})
            dispatcher = Dispatcher(JobContext(app.state.database, clock), LAYERS, slots=4, poll_s=30)
            for first in range(1, 60, 10):
                await append(client, talk(first, first + 9), chat_id="c")
                clock.step(60)
                await dispatcher.drain()
        answers = [await client.get(path) for path in CONTEXTS]
    await app.state.database.close()
    assert all(answer.status_code == 200 for answer in answers)
    return [answer.content for answer in answers]


class Former:
    """A data directory of a former version, and what its database contains."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.contexts: list[bytes] = []
        self.dump: list[str] = []


@pytest.fixture(scope="module")
async def made_former() -> AsyncGenerator[Former]:
    with a_folder() as folder:
        former = Former(folder / "data")
        async with former_postgres(former.data) as postgres:
            await asyncio.to_thread(migrate, postgres.url)
            former.contexts = await read_contexts(postgres.url, say_first=True)
            await run(postgres, "memobook", ADDED)
            await run(postgres, "memobook", "DO $$ BEGIN ASSERT show_trgm('日本語の猫') = '{}'; END $$")
            former.dump = await dump_all(former.data)
        yield former


@pytest.fixture
def former(made_former: Former, open_folder: Path) -> Former:
    """Files of the test's own."""
    subprocess.run(["cp", "-a", str(made_former.data), str(open_folder)], check=True)
    copy = Former(open_folder / "data")
    copy.contexts, copy.dump = made_former.contexts, made_former.dump
    return copy


async def names_of_databases(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[str, str]:
    """The LC_CTYPE of each database."""
    return {row["name"]: row["ctype"] for row in await connection.fetch(NAMES)}


async def assert_converted(former: Former, said: list[str] | None = None) -> None:
    """Start the servers, and compare what is there with what was there before."""
    async with servers_only(former.data, (said if said is not None else []).append) as stack:
        assert await dump_all(former.data) == former.dump
        connection = await connect(stack)
        assert tuple(await connection.fetchrow(LETTERS) or ()) == KNOWN
        assert await names_of_databases(connection) == {
            "memobook": "C.UTF-8",
            "template1": "C.UTF-8",
            "template0": "C",
            "postgres": "C",
        }
        assert await connection.fetchval("SELECT reltuples FROM pg_class WHERE relname = 'messages'") == 60
        await connection.close()
        assert await read_contexts(stack.urls.database_url) == former.contexts
    assert processes_of(former.data) == []


async def test_a_new_database_knows_all_letters(data: Path) -> None:
    async with servers_only(data) as stack:
        connection = await connect(stack)
        assert tuple(await connection.fetchrow(LETTERS) or ()) == KNOWN
        assert set((await names_of_databases(connection)).values()) == {"C.UTF-8"}
        await connection.close()


async def test_a_former_database_is_converted_once(former: Former) -> None:
    said: list[str] = []
    await assert_converted(former, said)
    assert [line.split(" (")[0] for line in said] == ["Converting the database", "The database is converted."]
    async with servers_only(former.data, said.append):
        pass
    assert len(said) == 2


SHARES = [0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9] if "TESTS_EXAMPLES" in os.environ else [0.5]


@pytest.mark.parametrize("share", SHARES)
async def test_a_conversion_that_is_killed_is_repeated(former: Former, share: float) -> None:
    databases = former.data / "postgres/base"
    before = {path: len(list(path.iterdir())) for path in databases.iterdir()}
    empty, full = min(before.values()), max(before.values())

    def is_copying() -> bool:
        new = set(databases.iterdir()) - set(before)  # the copy of template1, then that of memobook
        if len(new) < 2:
            return False
        return len(list(max(new, key=lambda path: int(path.name)).iterdir())) >= empty + share * (full - empty)

    async with foreground(former.data) as process:
        await eventually(is_copying)
        process.kill()
        await process.wait()
    said: list[str] = []
    await assert_converted(former, said)
    assert any(line.startswith("Converting") for line in said), "it was not complete"


async def test_a_replaced_database_is_dropped_later(former: Former) -> None:
    async with former_postgres(former.data) as postgres:
        await run(postgres, "postgres", "CREATE DATABASE memobook_old_ctype")
    await assert_converted(former)


async def test_a_long_comparison_is_not_cut_off(former: Former) -> None:
    async with former_postgres(former.data) as postgres:
        connection = await postgres.connect("memobook")
        assert await connection.fetchval("SHOW statement_timeout") == "0", "not the 70 seconds of the database"
        await connection.close()


@pytest.mark.parametrize(
    ("extra", "line"),
    [
        (
            """
            CREATE FUNCTION has_rows() RETURNS bool LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT FROM messages)';
            CREATE TABLE picky (id int CHECK (has_rows()));
            INSERT INTO picky VALUES (1);
            """,
            "pg_restore failed (exit code 1); logs/postgres.log may have the reason.",
        ),
        (
            """
            CREATE FUNCTION place(int) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT current_database()';
            CREATE TABLE placed (id int, place text GENERATED ALWAYS AS (place(id)) STORED);
            INSERT INTO placed VALUES (1);
            """,
            "the copy differs in public.placed.",
        ),
    ],
    ids=["not-restored", "not-equal"],
)
async def test_a_database_that_cannot_be_copied_stays_in_use(former: Former, extra: str, line: str) -> None:
    async with former_postgres(former.data) as postgres:
        await run(postgres, "memobook", extra)
    said: list[str] = []
    async with servers_only(former.data, said.append) as stack:
        connection = await connect(stack)
        ctypes = await names_of_databases(connection)
        assert ctypes == {"memobook": "C", "template1": "C.UTF-8", "template0": "C", "postgres": "C"}
        await connection.close()
        assert await read_contexts(stack.urls.database_url) == former.contexts
    assert said[1:] == [f"The database keeps the LC_CTYPE C: {line}"]


async def test_a_locale_that_is_missing_is_one_line(data: Path) -> None:
    async with former_postgres(data) as postgres:
        await run(postgres, "postgres", "UPDATE pg_database SET datctype = 'xx_XX.UTF-8' WHERE datname = 'postgres'")
    with pytest.raises(LocalError, match=r"^PostgreSQL refuses connections: .* LC_CTYPE \"xx_XX.UTF-8\""):
        await servers_only(data).__aenter__()
    assert processes_of(data) == []


def test_the_machine_is_asked_for_its_locales() -> None:
    assert has_locale("C")
    assert not has_locale("xx_XX.UTF-8")


def test_a_copy_needs_more_space_than_the_database() -> None:
    assert needed_bytes(0) == 512 << 20
    assert needed_bytes(1 << 30) == (512 + 1024 + 1280) << 20
    assert needed_bytes(100 << 30) == (512 + 1024 + 125 * 1024) << 20


async def run(postgres: Postgres, database: str, statements: str) -> None:
    """Execute statements as the superuser."""
    connection = await postgres.connect(database)
    await connection.execute(statements)
    await connection.close()
