"""Copies databases with an old LC_CTYPE into new ones, which take their place.

It runs before the migration and the service start, when no other process uses the server. For each database, a new one
is created beside it, `pg_dump | pg_restore` fills it, the rows of all tables are compared, and one transaction
exchanges the names. Then the old one is dropped, so that it keeps no text that is erased later.

A run that is killed leaves an incomplete copy, or an old database that is no longer used. The next run drops this
leftover. If the leftover is an incomplete copy, the run then copies the database again from the beginning.
"""

import asyncio
import shutil
from collections.abc import Callable
from typing import Final, TypeAlias

import asyncpg

from app.local.children import how_it_ended
from app.local.command import run_pipe
from app.local.ctype import CTYPE, OLD_CTYPES, available_ctype
from app.local.errors import LocalError
from app.local.fingerprint import fingerprint
from app.local.postgres import DATABASE, Postgres

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Say: TypeAlias = Callable[[str], None]

_MIB: Final = 1 << 20
_MAX_WAL_BYTES: Final = 1024 * _MIB
"""PostgreSQL's `max_wal_size`, which a long copy fills."""

_SPARE_BYTES: Final = 512 * _MIB

_COPIED: Final = ("template1", DATABASE)
_NEW, _OLD = "_new_ctype", "_old_ctype"
"""Suffixes of the names of a copy that is not complete, and of a database that was replaced."""

_LISTS: Final = ("local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces")
"""Settings of databases that are stored as lists of quoted names."""


async def convert_databases(postgres: Postgres, say: Say) -> None:
    """Replace the embedded databases whose LC_CTYPE is C or POSIX. Raises LocalError if the server fails meanwhile.

    The service works with the old databases, too. So if this machine has no C.UTF-8, they are kept, without a message.
    If the disk has too little space, they are kept, and `say` is called with the reason. The same applies to a database
    whose copy fails or differs from it, and to the databases after it.
    """
    connection = await postgres.connect("postgres")
    try:
        await _drop_leftovers(connection)
        sizes = await _find_old(connection)
        if not sizes or available_ctype() is None:
            return
        needed, free = needed_bytes(max(sizes.values())), shutil.disk_usage(postgres.files).free
        if free < needed:
            say(
                f"The database keeps the LC_CTYPE C: to convert it, {needed // _MIB} MiB must be free on the disk of"
                f" {postgres.files}, and {free // _MIB} MiB are."
            )
            return
        say(f"Converting the database ({sum(sizes.values()) // _MIB} MiB) to LC_CTYPE {CTYPE}; this happens once …")
        for name in sizes:
            if reason := await _replace(postgres, connection, name):
                say(f"The database keeps the LC_CTYPE C: {reason}.")
                return
        say("The database is converted.")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        line = str(error).split("\n", 1)[0]
        raise LocalError(f"the conversion of the database failed: {line}") from error
    finally:
        await connection.close()


def needed_bytes(size_bytes: int) -> int:
    """Return how many bytes must be free to copy a database of this size: its files, WAL, and sorting for indexes."""
    return size_bytes * 5 // 4 + min(size_bytes, _MAX_WAL_BYTES) + _SPARE_BYTES


async def _find_old(connection: Connection) -> dict[str, int]:
    """Return the names of the databases to be converted, with their sizes in bytes. `template1` comes first."""
    rows = await connection.fetch(
        """
        SELECT datname, pg_database_size(oid) AS bytes FROM pg_database
        WHERE datname = ANY($1) AND datctype = ANY($2) AND pg_encoding_to_char(encoding) = 'UTF8'
        ORDER BY array_position($1, datname::text)
        """,
        _COPIED,
        OLD_CTYPES,
    )
    return {row["datname"]: row["bytes"] for row in rows}


async def _drop_leftovers(connection: Connection) -> None:
    """Drop what an earlier run left: an incomplete copy, or a database that was replaced."""
    for name in _COPIED:
        for leftover in (name + _NEW, name + _OLD):
            await connection.execute(f"DROP DATABASE IF EXISTS {leftover} WITH (FORCE)")


async def _replace(postgres: Postgres, connection: Connection, name: str) -> str | None:
    """Replace a database by a copy with the new LC_CTYPE. Return None, or the reason why the old database remains."""
    new, old = name + _NEW, name + _OLD
    await _create(connection, name, new)
    source = postgres.client("pg_dump", "--format=custom", "--compress=none", f"--dbname={name}")
    sink = postgres.client("pg_restore", "--single-transaction", "--exit-on-error", f"--dbname={new}")
    for program, code in zip(("pg_dump", "pg_restore"), await run_pipe(source, sink), strict=True):
        if code != 0:
            await connection.execute(f"DROP DATABASE {new} WITH (FORCE)")
            return f"{program} failed ({how_it_ended(code)}); logs/postgres.log may have the reason"
    try:
        differing = await _differing(postgres, name, new)
    except asyncpg.PostgresError as error:
        await connection.execute(f"DROP DATABASE {new} WITH (FORCE)")
        return f"the copy cannot be compared ({str(error).splitlines()[0]})"
    if differing:
        await connection.execute(f"DROP DATABASE {new} WITH (FORCE)")
        return f"the copy differs in {', '.join(differing)}"
    is_template = await connection.fetchval("SELECT datistemplate FROM pg_database WHERE datname = $1", name)
    async with connection.transaction():
        await connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE false")
        await connection.execute(f"ALTER DATABASE {name} RENAME TO {old}")
        await connection.execute(f"ALTER DATABASE {new} RENAME TO {name}")
        await connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE {is_template}")
    await connection.execute(f"DROP DATABASE {old} WITH (FORCE)")
    return None


async def _create(connection: Connection, name: str, new: str) -> None:
    """Create an empty database with the owner, the settings and the permissions of another."""
    owner = await connection.fetchval("SELECT datdba::regrole::text FROM pg_database WHERE datname = $1", name)
    await connection.execute(
        f"CREATE DATABASE {new} OWNER {owner} TEMPLATE template0 ENCODING 'UTF8'"
        f" LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LC_COLLATE 'C' LC_CTYPE '{CTYPE}'"
    )
    settings = await connection.fetch(
        """
        SELECT format(
            'ALTER %s SET %I TO %s',
            CASE WHEN rolname IS NULL THEN format('DATABASE %I', $2::text)
                ELSE format('ROLE %I IN DATABASE %I', rolname, $2::text) END,
            setting, CASE WHEN setting = ANY($3) THEN value ELSE quote_literal(value) END
        ) AS statement
        FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
        LEFT JOIN pg_roles ON pg_roles.oid = setrole,
        unnest(setconfig) AS entry, split_part(entry, '=', 1) AS setting,
        substr(entry, length(setting) + 2) AS value
        WHERE datname = $1
        """,
        name,
        new,
        _LISTS,
    )
    permissions = await connection.fetch(
        """
        SELECT format(
            'GRANT %s ON DATABASE %I TO %s%s', privilege_type, $2::text,
            CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END,
            CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
        ) AS statement
        FROM pg_database, aclexplode(datacl) WHERE datname = $1
        """,
        name,
        new,
    )
    if permissions:
        await connection.execute(f"REVOKE ALL ON DATABASE {new} FROM PUBLIC, {owner}")
    for row in [*settings, *permissions]:
        await connection.execute(row["statement"])


async def _differing(postgres: Postgres, name: str, new: str) -> list[str]:
    """Return the tables and sequences in which a database and its copy differ, and analyse the copy."""
    one = await postgres.connect(name)
    try:
        other = await postgres.connect(new)
        try:
            await other.execute("ANALYZE")
            expected, found = await asyncio.gather(fingerprint(one), fingerprint(other))
        finally:
            await other.close()
    finally:
        await one.close()
    return sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
