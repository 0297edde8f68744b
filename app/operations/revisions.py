"""Whether a database is migrated, by the migrations' own files.

Alembic would tell it too, but takes more memory than an API that never migrates should give for it. A revision that
no migration here follows is the newest, or a later version's: of several processes that are upgraded one after
another, the former go on serving when the schema is already ahead of them.
"""

import ast
from pathlib import Path

import asyncpg

from app.kit.db import Connection

MIGRATIONS = Path(__file__).parent.parent / "migrations" / "versions"


async def is_migrated(connection: Connection) -> bool:
    """Whether the schema is there and not behind."""
    try:
        revision = await connection.fetchval("SELECT version_num FROM alembic_version")
    except asyncpg.UndefinedTableError:
        return False
    return revision is not None and revision not in _BEHIND


def read_followed(folder: Path = MIGRATIONS) -> frozenset[str]:
    """The revisions after which there is another one in `folder`: a database at one of them is behind."""
    return frozenset(name for path in folder.glob("*.py") for name in _follows(path))


def _follows(path: Path) -> tuple[str, ...]:
    """What a migration names as its `down_revision`: nothing, a name, or several where branches meet."""
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


_BEHIND = read_followed()
