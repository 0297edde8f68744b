"""Describes the content of a database in a form in which two databases can be compared."""

from typing import TypeAlias

import asyncpg

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

_OTHERS = "'pg_catalog', 'information_schema'"


async def fingerprint(connection: Connection) -> dict[str, tuple[object, ...]]:
    """Return the number and the hash of the rows of each table, and the state of each sequence, by quoted name.

    The hash is the sum of the hashes of the rows, so it does not depend on the order of the rows. A row is hashed as
    JSON, whose text does not depend on LC_CTYPE. Reads all rows.
    """
    tables = await connection.fetch(
        f"""
        SELECT format('%I.%I', nspname, relname) AS name
        FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE relkind IN ('r', 'm') AND relpersistence <> 't' AND nspname NOT IN ({_OTHERS})
        """  # noqa: S608  # constants only
    )
    sequences = await connection.fetch(
        f"""
        SELECT format('%I.%I', schemaname, sequencename) AS name, last_value
        FROM pg_sequences WHERE schemaname NOT IN ({_OTHERS})
        """  # noqa: S608
    )
    found: dict[str, tuple[object, ...]] = {row["name"]: (row["last_value"],) for row in sequences}
    for row in tables:
        counted = await connection.fetchrow(
            f"SELECT count(*), sum(hashtextextended(row_to_json(t)::text, 0)) FROM ONLY {row['name']} AS t"  # noqa: S608
        )
        found[row["name"]] = tuple(counted or ())
    return found
