"""The embedded PostgreSQL: its files, settings, role and database.

Settings that are not listed here keep PostgreSQL's defaults: fsync on, 128 MB of shared buffers, 100 connections. The
server only listens on a Unix socket and requires a password there, too.

Texts are ordered by their bytes, the same on every machine: LC_COLLATE is C. PostgreSQL's builtin provider with C.UTF-8
supplies `lower`, `upper` and regular expressions. Full text search and `pg_trgm` do not use it: in PostgreSQL 18 they
ask the C library which characters are letters, by LC_CTYPE.
"""

import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import asyncpg

from app.local.account import Account
from app.local.binaries import postgres_program
from app.local.command import Command, run_to_end
from app.local.ctype import available_ctype
from app.local.directory import DataDirectory, write_private
from app.local.errors import LocalError
from app.local.processes import working_directory

_NAME = "PostgreSQL"
_PORT = 5432
_SUPERUSER = "postgres"
_ROLE = "memobook"
DATABASE = "memobook"
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
"""The complete environment. PGPORT, PGDATA and the like are not passed on, because they are for other servers."""

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}

_QUIET = {"log_error_verbosity": "terse", "log_min_error_statement": "panic"}
"""Settings of the service's role and of client programs. Without them, the server's log quotes the rows and statements
that cause errors, with texts of chats."""


class Postgres:
    """A PostgreSQL server with its data in `DATA/postgres`.

    Args:
        directory: DATA, the data directory of the embedded stack.
        account: The account that runs the server.
        sockets: The directory of its socket, owned by `account`.
        settings: Additional server settings by name; they override the built-in ones.

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
        """The URL of the service's database, for SQLAlchemy. It includes the port, because PGPORT applies otherwise."""
        return f"postgresql+asyncpg://{_ROLE}:{self._role_password}@/{DATABASE}?host={self._sockets}&port={_PORT}"

    @property
    def files(self) -> Path:
        """The data directory of the server."""
        return self._directory.postgres

    @property
    def command(self) -> Command:
        """The command of the server. SIGINT is a fast, clean shutdown; SIGQUIT an immediate one with later recovery."""
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
        """Create `DATA/postgres` if it does not exist, atomically. Raises LocalError if initdb fails."""
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
        """Remove the `postmaster.pid` of a killed server if its pid now belongs to another process.

        PostgreSQL refuses to start while any process has that pid, and in a container the same few pids are reused. A
        process is recognised as the server by its working directory, which is the data directory. If the working
        directory cannot be read, the file is kept.
        """
        file = self._directory.postgres / "postmaster.pid"
        if file.exists():
            pid = file.read_text(encoding="utf-8").split("\n", 1)[0]
            elsewhere = working_directory(int(pid)) if pid.isdigit() else None
            if elsewhere not in (None, self._directory.postgres.resolve()):
                file.unlink()

    async def accepts(self) -> bool:
        """Return whether the server accepts connections. Raises LocalError if it refuses them for good."""
        try:
            connection = await self.connect("postgres")
        except (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.ConnectionDoesNotExistError):
            return False
        except asyncpg.InvalidPasswordError:
            path = self._directory.path / f"{_SUPERUSER}.password"
            raise LocalError(f"{path} does not hold the password of {self._directory.postgres}") from None
        except asyncpg.PostgresError as error:  # for example if this machine lacks the locale of the database
            raise LocalError(f"PostgreSQL refuses connections: {error.args[0]} {error.detail or ''}".rstrip()) from None
        await connection.close()
        return True

    async def make_database(self) -> None:
        """Create the service's role and database if they are missing.

        The role may create databases but is not a superuser. Extensions that only a superuser may install are in
        `template1`, and so in every database that the role creates.
        """
        connection = await self.connect("template1")
        try:
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            await connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            known = await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", _ROLE)
            verb = "ALTER" if known else "CREATE"
            await connection.execute(f"{verb} ROLE {_ROLE} LOGIN CREATEDB PASSWORD '{self._role_password}'")
            for name, value in _QUIET.items():
                await connection.execute(f"ALTER ROLE {_ROLE} SET {name} = {value}")
        finally:
            await connection.close()  # a template with open connections cannot be copied
        connection = await self.connect("postgres")
        try:
            if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", DATABASE):
                await connection.execute(f"CREATE DATABASE {DATABASE} OWNER {_ROLE}")
        finally:
            await connection.close()

    def client(self, program: str, *arguments: str) -> Command:
        """Return the command of a client program such as `pg_dump`, connected as the superuser."""
        return Command(
            name=program,
            arguments=(str(postgres_program(program)), *arguments),
            environment={
                **_ENVIRONMENT,
                "PGHOST": str(self._sockets),
                "PGPORT": str(_PORT),
                "PGUSER": _SUPERUSER,
                "PGPASSWORD": self._password,
                "PGOPTIONS": " ".join(f"-c {name}={value}" for name, value in _QUIET.items()),
            },
            directory=Path("/"),
        )

    async def connect(self, database: str) -> "asyncpg.Connection[asyncpg.Record]":
        """Return a connection of the superuser to `database`, without a time limit for statements."""
        return await asyncpg.connect(
            host=str(self._sockets),
            port=_PORT,
            user=_SUPERUSER,
            password=self._password,
            database=database,
            ssl=False,
            timeout=10,
            server_settings={"statement_timeout": "0"},
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
                "--lc-ctype",
                available_ctype() or "C",
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
