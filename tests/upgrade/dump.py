"""Writes all rows of a database as text, and loads that text: COPY blocks as `pg_dump --data-only` writes them.

Ids that were made at random are replaced by numbered ones in the same order, so that two runs write the same text.
"""

import io
import re
from collections.abc import Iterator

import asyncpg

_TABLES = """
    SELECT c.relname::text FROM pg_class c
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'alembic_version'
    ORDER BY 1"""

_COLUMNS = """
    SELECT quote_ident(attname) AS attname, attnum FROM pg_attribute
    WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""

_KEY = "SELECT unnest(indkey) FROM pg_index WHERE indrelid = $1::text::regclass AND indisprimary"

_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_BLOCK = re.compile(r"^COPY (\w+) \((.+)\) FROM stdin;\n((?:.*\n)*?)\\\.\n", re.MULTILINE)
_REVISION = re.compile(r"^-- Revision (\w+), after (\d+) migrations\.$", re.MULTILINE)

_HEADER = """\
-- All rows of a database of Memobook. `tests/upgrade/test_upgrade.py` loads them and upgrades the schema.
-- Revision {revision}, after {migrations} migrations.
-- Keys and secrets are not real.
"""


async def list_tables(connection: asyncpg.Connection) -> list[str]:
    """Return the names of all tables but Alembic's own."""
    return [row[0] for row in await connection.fetch(_TABLES)]


async def write_dump(connection: asyncpg.Connection, migrations: int) -> str:
    """Return all rows as text; `migrations` is the number of migrations that made the schema."""
    revision = await connection.fetchval("SELECT version_num FROM alembic_version")
    await connection.execute("SET TIME ZONE 'UTC'")
    blocks = [await _write_table(connection, table) for table in await list_tables(connection)]
    kept = await connection.fetch("SELECT chat_key FROM chats UNION SELECT user_key FROM chats")
    work_ids = await connection.fetch("SELECT work_id FROM work ORDER BY owner_key, line_id, layer, key")
    numbered = _number_ids("\n".join(blocks), {str(row[0]) for row in kept}, [str(row[0]) for row in work_ids])
    return "\n".join([_HEADER.format(revision=revision, migrations=migrations), numbered])


def read_revision(dump: str) -> tuple[str, int]:
    """Return the revision that a dump was made at, and the number of migrations up to it."""
    found = _REVISION.search(dump)
    if found is None:
        raise ValueError("the dump names no revision")
    return found[1], int(found[2])


async def load_dump(connection: asyncpg.Connection, dump: str) -> None:
    """Load the rows of a dump in one transaction."""
    async with connection.transaction():
        for table, columns, rows in _read_blocks(dump):
            await connection.copy_to_table(table, source=io.BytesIO(rows), columns=columns, format="text")


def _read_blocks(dump: str) -> Iterator[tuple[str, list[str], bytes]]:
    for table, columns, rows in _BLOCK.findall(dump):
        yield table, [column.strip('"') for column in columns.split(", ")], rows.encode()


async def _write_table(connection: asyncpg.Connection, table: str) -> str:
    columns = {row["attnum"]: row["attname"] for row in await connection.fetch(_COLUMNS, table)}
    key = [columns[row[0]] for row in await connection.fetch(_KEY, table)]
    rows = io.BytesIO()
    query = f'SELECT {", ".join(columns.values())} FROM "{table}" ORDER BY {", ".join(key)}'
    await connection.copy_from_query(query, output=rows, format="text")
    return f"COPY {table} ({', '.join(columns.values())}) FROM stdin;\n{rows.getvalue().decode()}\\.\n"


def _number_ids(text: str, kept: set[str], work_ids: list[str]) -> str:
    """Number the ids in their order, for lists are sorted by them; those of work by their rows, as copies' are random.

    `kept` are those that are computed from names, and stay.
    """
    others = sorted({found[0] for found in _UUID.finditer(text)} - kept - set(work_ids))
    numbers = {name: f"01900000-0000-7000-8000-{number:012x}" for number, name in enumerate(others, start=1)}
    numbers |= {name: f"01900000-0000-7000-9000-{number:012x}" for number, name in enumerate(work_ids, start=1)}
    return _UUID.sub(lambda found: numbers.get(found[0], found[0]), text)
