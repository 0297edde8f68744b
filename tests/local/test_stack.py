import asyncio
import os
import signal
from pathlib import Path

import asyncpg
import httpx
import psutil
import pytest
import redis.asyncio
from arq.connections import RedisSettings
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from app.local.account import choose_account, owner_of
from app.local.command import spawn
from app.local.directory import DataDirectory
from app.local.errors import LocalError
from app.local.leftovers import PidFile
from app.local.postgres import Postgres
from app.local.running import find_running
from app.local.sockets import socket_base, socket_directory
from app.local.stack import Stack
from tests.local.conftest import (
    FAST,
    SERVICE,
    as_root,
    child_named,
    connect,
    eventually,
    mode_of,
    processes_of,
    servers_only,
    whole_stack,
    with_namespaces,
)


async def ping(url: str) -> bool:
    client = redis.asyncio.from_url(url)  # type: ignore[no-untyped-call]  # redis 5 types it halfway
    try:
        return bool(await client.ping())
    finally:
        await client.aclose()


async def test_both_servers_answer_on_sockets_only(data: Path) -> None:
    async with servers_only(data) as stack:
        engine = create_async_engine(stack.urls.database_url)
        async with engine.connect() as connection:
            assert await connection.scalar(text("SHOW listen_addresses")) == ""
            assert await connection.scalar(text("SHOW fsync")) == "off"
            assert await connection.scalar(text("SELECT '[1,2]'::vector <-> '[1,3]'")) == 1
        await engine.dispose()
        assert await ping(stack.urls.redis_url)
        for name in ("bin/postgres", "valkey-server"):
            assert not child_named(name).net_connections("inet")
    assert processes_of(data) == []


async def test_the_urls_are_what_arq_and_sqlalchemy_take(data: Path) -> None:
    async with servers_only(data) as stack:
        socket_path = RedisSettings.from_dsn(stack.urls.redis_url).unix_socket_path
        assert socket_path is not None
        assert mode_of(Path(socket_path)) == 0o700


async def test_a_password_is_asked_for_even_on_the_socket(data: Path) -> None:
    async with servers_only(data) as stack:
        url = stack.urls.database_url.replace("+asyncpg", "")
        password = url.split(":")[2].split("@")[0]
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(url.replace(password, "guess"))
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(url.replace("//memobook:", "//postgres:"))


async def test_stored_data_survives_a_restart(data: Path) -> None:
    async with servers_only(data) as stack:
        connection = await connect(stack)
        await connection.execute("CREATE TABLE kept AS SELECT '記憶' AS word")
        await connection.close()
    async with servers_only(data) as stack:
        connection = await connect(stack)
        assert await connection.fetchval("SELECT word FROM kept") == "記憶"
        await connection.close()


async def test_the_log_of_postgresql_quotes_no_row(data: Path) -> None:
    async with servers_only(data) as stack:
        connection = await asyncpg.connect(stack.urls.database_url.replace("+asyncpg", ""))
        await connection.execute("CREATE TABLE kept (word text CHECK (length(word) < 3))")
        for statement in ("INSERT INTO kept VALUES ('the secret')", "SELECT 'the secret'::int"):
            with pytest.raises(asyncpg.PostgresError):
                await connection.execute(statement)
        with pytest.raises(asyncpg.PostgresError):
            await connection.execute("INSERT INTO kept VALUES ($1)", "the secret")
        await connection.close()
    logs = "".join(path.read_text() for path in (data / "logs").glob("*postgres*"))
    assert "violates check constraint" in logs
    assert "INSERT" not in logs
    assert logs.count("the secret") == 1, "the message of an invalid number quotes it; the service casts no texts"


async def test_a_killed_initdb_starts_again_from_scratch(open_folder: Path) -> None:
    directory = DataDirectory(open_folder / "data")
    directory.make()
    unfinished = directory.postgres.with_name("postgres.new")
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    async with servers_only(directory.path):
        assert not unfinished.exists()


async def test_a_path_that_is_too_long_for_a_socket_works(open_folder: Path) -> None:
    async with servers_only(open_folder / ("d" * 120) / "data") as stack:
        assert await ping(stack.urls.redis_url)


async def test_the_whole_service_runs_and_can_be_found(data: Path) -> None:
    async with whole_stack(data) as stack:
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{stack.url}/readyz")).is_success
        assert find_running(data) == stack.urls
        assert child_named("worker").is_running()
    assert find_running(data) is None


async def test_two_stacks_run_side_by_side(open_folder: Path) -> None:
    async with whole_stack(open_folder / "one") as one, whole_stack(open_folder / "two") as two:
        assert one.urls != two.urls
        assert one.url != two.url


async def test_data_in_use_is_one_line(data: Path) -> None:
    async with servers_only(data):
        with pytest.raises(LocalError, match=f"^the data directory {data} is in use by process {os.getpid()}$"):
            await servers_only(data).__aenter__()
        assert find_running(data) is not None


async def test_real_servers_take_the_place_of_the_embedded_ones(data: Path, open_folder: Path) -> None:
    async with servers_only(data) as real:
        urls = real.urls
        stack = Stack(
            open_folder / "other",
            database_url=urls.database_url,
            redis_url=urls.redis_url,
            port=0,
            program=SERVICE,
        )
        async with stack:
            assert stack.urls == urls
        assert [path.name for path in (open_folder / "other/logs").iterdir()] == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("migrate", r"^The migration failed \(exit code 3\)$"),
        ("api", r"^The API did not start \(exit code 3\)$"),
    ],
)
async def test_a_service_that_does_not_start_stops_it_all(data: Path, name: str, line: str) -> None:
    with pytest.raises(LocalError, match=line):
        await whole_stack(data, SERVICE_FAILS=name).__aenter__()
    assert processes_of(data) == []


async def test_a_worker_with_a_long_call_is_asked_twice_to_stop(data: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with whole_stack(data, SERVICE_ENDS=str(state)):
        await eventually(state.exists)
    assert state.read_text() == "ended", "it was not killed"


@pytest.mark.parametrize("name", ["bin/postgres", "valkey-server", "worker", "api"])
async def test_a_child_that_is_killed_comes_back(data: Path, name: str) -> None:
    said: list[str] = []
    async with whole_stack(data, say=said.append) as stack:
        killed = child_named(name)
        killed.send_signal(signal.SIGKILL)
        await eventually(lambda: any("starts again in 0.5 s" in line for line in said))
        await eventually(lambda: any(is_new(child, killed, name) for child in psutil.Process().children()))
        await eventually(lambda: all_answer(stack))
    assert processes_of(data) == []


def is_new(child: psutil.Process, killed: psutil.Process, name: str) -> bool:
    return child != killed and any(name in word for word in child.cmdline())


async def all_answer(stack: Stack) -> bool:
    try:
        await (await connect(stack)).close()
        async with httpx.AsyncClient(trust_env=False) as client:
            ready = (await client.get(f"{stack.url}/readyz")).is_success
        return ready and await ping(stack.urls.redis_url)
    except (OSError, asyncpg.PostgresError, httpx.TransportError, redis.asyncio.ConnectionError):
        return False


async def test_a_stale_pid_may_belong_to_another_process(data: Path) -> None:
    async with servers_only(data):
        text_of_file = (data / "postgres/postmaster.pid").read_text()
        owner = (data / "postgres").stat()
    # As a crash leaves it; the number is that of a process that PostgreSQL's user may signal.
    stranger = await asyncio.create_subprocess_exec(
        "sleep", "60", user=owner.st_uid, group=owner.st_gid, extra_groups=[], cwd="/"
    )
    try:
        lines = text_of_file.split("\n")
        (data / "postgres/postmaster.pid").write_text("\n".join([str(stranger.pid), *lines[1:]]))
        async with servers_only(data):
            assert stranger.returncode is None
    finally:
        stranger.kill()
        await stranger.wait()


async def test_a_postgresql_that_was_left_over_makes_way(data: Path) -> None:
    said: list[str] = []
    directory = DataDirectory(data)
    account = choose_account(directory.postgres, [data, socket_base()])
    with socket_directory(data / "run/former", account) as sockets:
        former = await spawn(Postgres(directory, account, sockets, FAST).command)
        PidFile.of(directory, "postgres").write(former.pid, signal.SIGINT)
        await eventually((sockets / ".s.PGSQL.5432").exists)
        async with servers_only(data, said.append) as stack:
            assert await former.wait() == 0
            await (await connect(stack)).close()
    assert said == [f"Ending process {former.pid} (postgres), left over from a run that was killed."]


async def test_a_lost_password_is_one_line(data: Path) -> None:
    async with servers_only(data):
        pass
    (data / "postgres.password").unlink()
    with pytest.raises(LocalError, match=r"postgres\.password does not hold the password of"):
        await servers_only(data).__aenter__()
    assert processes_of(data) == []


async def test_files_of_another_postgresql_are_one_line(data: Path) -> None:
    async with servers_only(data):
        pass
    (data / "postgres/PG_VERSION").write_text("17\n")
    with pytest.raises(LocalError, match=r"^PostgreSQL did not start \(exit code 1\): .* version 17"):
        await servers_only(data).__aenter__()


async def test_a_data_directory_that_is_a_file_is_one_line(open_folder: Path) -> None:
    (open_folder / "data").write_text("")
    with pytest.raises(LocalError, match=f"^cannot use the data directory {open_folder / 'data'}: "):
        await servers_only(open_folder / "data").__aenter__()


@as_root
async def test_root_runs_postgresql_as_another_user(data: Path) -> None:
    async with servers_only(data):
        owner = owner_of(data / "postgres")
        assert owner != 0
        assert child_named("bin/postgres").uids().effective == owner
        assert owner_of(data) == owner_of(data / "logs") == owner_of(data / "postgres.password") == 0


@with_namespaces
async def test_root_runs_postgresql_below_a_private_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    for _ in range(2):
        async with servers_only(home / "data") as stack:
            connection = await connect(stack)
            assert await connection.fetchval("SELECT 1") == 1
            await connection.close()
    assert mode_of(home) == 0o700
    assert owner_of(home / "data/postgres") == 0
