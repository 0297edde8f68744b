"""Checks whether a database is migrated, by reading the migration files.

Alembic takes too much memory for an API that never migrates, so it is not used. A database is outdated if one of the
migration files follows its revision. A database at any other revision is accepted: it is at the newest revision of this
version of the service, or was migrated by a later version. Whether this version can use the schema of a later one is
not checked.
"""

import ast
from pathlib import Path

import asyncpg

from app.kit.db import Connection

MIGRATIONS = Path(__file__).parent.parent / "migrations" / "versions"


async def is_migrated(connection: Connection) -> bool:
    """Return whether the schema exists and is not older than the newest migration."""
    try:
        revision = await connection.fetchval("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return False
    return revision is not None and revision not in _OUTDATED


def read_followed(folder: Path = MIGRATIONS) -> frozenset[str]:
    """Return the revisions that another migration in `folder` follows. A database at one of them is outdated."""
    return frozenset(name for path in folder.glob("*.py") for name in _follows(path))


def _follows(path: Path) -> tuple[str, ...]:
    """Return the `down_revision` of a migration: none, one, or several if it merges branches."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            target, value = node.target, node.value
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            target, value = node.targets[0], node.value
        else:
            continue
        if target.id == "down_revision" and value is not None:
            named = ast.literal_eval(value)
            return () if named is None else (named,) if isinstance(named, str) else tuple(named)
    return ()


_OUTDATED = read_followed()
