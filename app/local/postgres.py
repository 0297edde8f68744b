"""The embedded PostgreSQL: its files, its settings, its role and database.

What is not named here stays as PostgreSQL ships it: fsync on, 128 MB of shared buffers, 100 connections.
It listens on a socket only, and asks for a password even there.
"""

import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import asyncpg

from app.local.account import Account
from app.local.binaries import postgres_program
from app.local.command import Command, run_to_end
from app.local.directory import DataDirectory, write_private
from app.local.errors import LocalError
from app.local.processes import working_directory

_NAME = "PostgreSQL"
_PORT = 5432
_SUPERUSER = "postgres"
_ROLE = "memobook"
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
"""All of it: PGPORT, PGDATA and their like in this process's environment are meant for other servers."""

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}


class Postgres:
    """One PostgreSQL in `DATA/postgres`.

    Args:
        directory: DATA.
        account: Who runs it.
        sockets: The directory of its socket, which `account` owns.
        settings: Further settings of the server by name; they win.

    """

    def __init__(self, directory: DataDirectory, account: Account, sockets: Path, settings: Mapping[str, str]) -> None:
        self._directory = directory
        self._account = account
        self._sockets = sockets
        self._settings = {
            **_SETTINGS,
            "unix_socket_directories": str(sockets),
            "port": str(_PORT),
            **settings,
        }
        self._password = directory.password("postgres")
        self._role_password = directory.password(_ROLE)

    @property
    def url(self) -> str:
        """Of the service's database, for SQLAlchemy. The port is named because PGPORT would change it."""
        return f"postgresql+asyncpg://{_ROLE}:{self._role_password}@/{_ROLE}?host={self._sockets}&port={_PORT}"

    @property
    def command(self) -> Command:
        """The server. SIGINT ends it fast and cleanly, SIGQUIT at once, to recover at the next start."""
        options = (part for name, value in self._settings.items() for part in ("-c", f"{name}={value}"))
        return Command(
            name=_NAME,
            arguments=(str(postgres_program("postgres")), "-D", str(self._directory.postgres), *options),
            environment=_ENVIRONMENT,
            directory=Path("/"),
            log=self._directory.logs / "postgres.log",
            account=self._account,
            stop_signals=((signal.SIGINT, 30.0), (signal.SIGQUIT, 5.0)),
            death_signal=signal.SIGINT,
        )

    async def initialise(self) -> None:
        """Make `DATA/postgres` if it is not there: whole or not at all. Raises LocalError."""
        if (self._directory.postgres / "PG_VERSION").exists():
            return
        unfinished = self._directory.postgres.with_name("postgres.new")
        self._clear(unfinished)
        password = self._sockets / "password"
        write_private(password, self._password)
        self._account.take(password)
        command = self._initdb(unfinished, password)
        if await run_to_end(command) != 0:
            raise LocalError(f"initdb failed{command.last_words()}")
        password.unlink()
        unfinished.rename(self._directory.postgres)

    def forget_dead_postmaster(self) -> None:
        """Remove a killed server's `postmaster.pid` if that pid is by now somebody else's.

        PostgreSQL refuses to start while a process with that pid lives, whatever it is, and in a container
        the same few pids come back each time. A server is known by its working directory, the data.
        """
        file = self._directory.postgres / "postmaster.pid"
        if file.exists():
            pid = file.read_text(encoding="utf-8").split("\n", 1)[0]
            elsewhere = working_directory(int(pid)) if pid.isdigit() else None
            if elsewhere not in (None, self._directory.postgres.resolve()):
                file.unlink()

    async def accepts(self) -> bool:
        """Whether the server takes connections yet. Raises LocalError if it never will."""
        try:
            connection = await self._connect("postgres")
        except (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.ConnectionDoesNotExistError):
            return False
        except asyncpg.InvalidPasswordError:
            path = self._directory.path / f"{_SUPERUSER}.password"
            raise LocalError(f"{path} does not hold the password of {self._directory.postgres}") from None
        await connection.close()
        return True

    async def make_database(self) -> None:
        """Make the service's role and database if they are missing.

        The role may make databases but is no superuser; what only a superuser may install is in every
        database that the role makes.
        """
        connection = await self._connect("template1")
        try:
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            known = await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", _ROLE)
            verb = "ALTER" if known else "CREATE"
            await connection.execute(f"{verb} ROLE {_ROLE} LOGIN CREATEDB PASSWORD '{self._role_password}'")
        finally:
            await connection.close()  # a template with a guest cannot be copied
        connection = await self._connect("postgres")
        try:
            if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", _ROLE):
                await connection.execute(f"CREATE DATABASE {_ROLE} OWNER {_ROLE}")
        finally:
            await connection.close()

    async def _connect(self, database: str) -> "asyncpg.Connection[asyncpg.Record]":
        return await asyncpg.connect(
            host=str(self._sockets),
            port=_PORT,
            user=_SUPERUSER,
            password=self._password,
            database=database,
            ssl=False,
            timeout=10,
        )

    def _clear(self, path: Path) -> None:
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(mode=0o700)
        self._account.take(path)

    def _initdb(self, path: Path, password: Path) -> Command:
        arguments = (
            *(str(postgres_program("initdb")), "--pgdata", str(path)),
            *("--username", _SUPERUSER, "--auth", "scram-sha-256", "--pwfile", str(password)),
            *(
                "--encoding",
                "UTF8",
                "--locale-provider",
                "builtin",
                "--builtin-locale",
                "C.UTF-8",
                "--locale",
                "C",
            ),
            *(("--no-sync",) if self._settings.get("fsync") == "off" else ()),
        )
        return Command(
            name="initdb",
            arguments=arguments,
            environment=_ENVIRONMENT,
            directory=Path("/"),
            log=self._directory.logs / "initdb.log",
            account=self._account,
        )
