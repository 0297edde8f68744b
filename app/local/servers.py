"""The two servers, PostgreSQL and Valkey; each is embedded unless its URL is given."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from app.local.account import Account, choose_account, own_account
from app.local.binaries import postgres_program
from app.local.children import Child
from app.local.conversion import convert_databases
from app.local.directory import DataDirectory
from app.local.leftovers import PidFile
from app.local.postgres import Postgres
from app.local.running import Urls
from app.local.sockets import socket_base, socket_directory
from app.local.valkey import Valkey

_RECOVERY_S = 60.0

Say = Callable[[str], None]


@asynccontextmanager
async def running_servers(
    directory: DataDirectory,
    *,
    database_url: str | None,
    redis_url: str | None,
    postgres_settings: Mapping[str, str],
    say: Say,
) -> AsyncGenerator[Urls]:
    """Run PostgreSQL and Valkey during the block and yield their URLs. Raises LocalError.

    A server whose URL is given is not started; its URL is yielded unchanged.
    """
    async with AsyncExitStack() as exits:
        if database_url is None or redis_url is None:
            account = _postgres_account(directory) if database_url is None else own_account()
            sockets = exits.enter_context(socket_directory(directory.run / "sockets", account))
        if database_url is None:
            postgres = Postgres(directory, account, sockets, postgres_settings)
            database_url = await exits.enter_async_context(_running_postgres(directory, postgres, say))
        if redis_url is None:
            valkey = Valkey(directory, sockets)
            child = Child(valkey.command, pid_file=PidFile.of(directory, "valkey"), say=say)
            await exits.enter_async_context(child.running(valkey.accepts))
            redis_url = valkey.url
        yield Urls(database_url, redis_url)


def _postgres_account(directory: DataDirectory) -> Account:
    programs = postgres_program("postgres").parent
    return choose_account(directory.postgres, [directory.path, programs, socket_base()])


@asynccontextmanager
async def _running_postgres(directory: DataDirectory, postgres: Postgres, say: Say) -> AsyncGenerator[str]:
    await postgres.initialise()
    child = Child(
        postgres.command,
        pid_file=PidFile.of(directory, "postgres"),
        say=say,
        before_start=postgres.forget_dead_postmaster,
    )
    async with child.running(postgres.accepts, timeout_s=_RECOVERY_S):
        await postgres.make_database()
        await convert_databases(postgres, say)
        yield postgres.url
