"""Checks of PostgreSQL itself: its version, its encoding, its locale, and the permissions of the role."""

from typing import Final

from app.doctor.finding import Finding
from app.kit.db import Connection, list_tables
from app.kit.errors import DatabaseRejected, Unavailable

TESTED_VERSION: Final = 18
"""The major version of PostgreSQL that the tests run against."""

_EXTENSIONS: Final = ["vector", "pg_trgm"]
"""Extensions that the report names if they are installed. The schema uses only `vector`."""


def judge_unavailable(error: Unavailable) -> Finding:
    """Return the finding for a database that cannot be used."""
    if isinstance(error, DatabaseRejected):
        advice = "Correct the user, the password and the name of the database in MEMOBOOK_DATABASE_URL."
    else:
        advice = "Check that PostgreSQL runs and responds, and that MEMOBOOK_DATABASE_URL has its address."
    return Finding("database", "fault", error.detail, advice)


async def check_server(connection: Connection) -> Finding:
    """Check version, encoding and writability; note the locale and the extensions."""
    row = await connection.fetchrow(
        """
        SELECT current_setting('server_version') AS version,
            current_setting('server_version_num')::int / 10000 AS major,
            current_setting('server_encoding') AS encoding,
            current_setting('transaction_read_only')::bool AS read_only, datctype AS ctype,
            ARRAY(SELECT extname || ' ' || extversion FROM pg_extension WHERE extname = ANY($1) ORDER BY 1)
                AS extensions
        FROM pg_database WHERE datname = current_database()
        """,
        _EXTENSIONS,
    )
    assert row is not None
    if row["encoding"] != "UTF8":
        return Finding(
            "database",
            "fault",
            f"The database's encoding is {row['encoding']}.",
            "Create a database with ENCODING 'UTF8', and migrate it.",
        )
    if row["read_only"]:
        return Finding(
            "database", "fault", "The database is read-only.", "Use the primary server, or end its read-only mode."
        )
    extensions = ", ".join(row["extensions"]) or "none"
    message = f"PostgreSQL {row['version']}, UTF8, LC_CTYPE {row['ctype']}, extensions: {extensions}."
    if row["major"] < TESTED_VERSION:
        return Finding("database", "note", f"{message} The tests run against PostgreSQL {TESTED_VERSION}.")
    return Finding("database", "ok", message)


async def check_locale(connection: Connection, *, is_embedded: bool) -> Finding:
    """Check whether PostgreSQL knows letters outside ASCII: if so, it finds two words in `é—é`, else none or one."""
    row = await connection.fetchrow(
        """
        SELECT datctype AS ctype, (SELECT count(*) > 1 FROM ts_parse('default', 'é—é')) AS knows_letters
        FROM pg_database WHERE datname = current_database()
        """
    )
    assert row is not None
    if row["knows_letters"]:
        message = f"Full text search and pg_trgm know the letters of all languages (LC_CTYPE {row['ctype']})."
        return Finding("locale", "ok", message)
    if is_embedded:
        advice = (
            "Restart memobook up: it converts the database if this machine has the locale C.UTF-8, and otherwise prints"
            " the reason."
        )
    else:
        advice = "Dump the database, and restore it into one with the LC_CTYPE C.UTF-8: see Locale in docs/deploy.md."
    message = f"With the LC_CTYPE {row['ctype']}, full text search and pg_trgm know no letters outside ASCII."
    return Finding("locale", "note", message, advice)


async def check_permissions(connection: Connection) -> Finding:
    """Check that the role may read and change every table of the service that exists."""
    names: list[str] = await connection.fetchval(
        """
        SELECT ARRAY(
            SELECT relname::text FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND (
                relname = ANY($1) AND NOT (
                    has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
                    AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))
                OR relname = 'alembic_version' AND NOT has_table_privilege(oid, 'SELECT'))
            ORDER BY relname)
        """,
        [table.name for table in list_tables()],
    )
    if names:
        return Finding(
            "permissions",
            "fault",
            f"The role may not read and change these tables: {', '.join(names)}.",
            "Migrate and run with the same role, or GRANT SELECT, INSERT, UPDATE, DELETE on them to the role.",
        )
    return Finding("permissions", "ok", "The role may read and change all tables.")
