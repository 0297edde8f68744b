"""The recorded files and the dump's keys; loads the dump into an empty database and upgrades it."""

import asyncio
from pathlib import Path

from app.migrate import migrate
from tests.conftest import sqlalchemy_url
from tests.upgrade.dump import load_dump, read_revision
from tests.upgrade.service import connected

_FOLDER = Path(__file__).parent

DUMP = _FOLDER / "2026_11_22.sql"
CONTEXTS = _FOLDER / "2026_11_22.contexts.json"
MEMORY = _FOLDER / "2026_11_22.memory.json"

KEYS = {"acme": "mb_00000000aaaa_" + "0" * 64, "globex": "mb_00000000bbbb_" + "0" * 64}
"""The keys of the dump's tenants. No other database has them."""


async def load(url: str) -> None:
    """Make the schema of the dump's revision in an empty database, and load its rows."""
    dump = DUMP.read_text(encoding="utf-8")
    revision, migrations = read_revision(dump)
    await asyncio.to_thread(migrate, sqlalchemy_url(url), f"+{migrations}")
    async with connected(url) as connection:
        assert await connection.fetchval("SELECT version_num FROM alembic_version") == revision
        await load_dump(connection, dump)


async def upgrade(url: str) -> None:
    """Bring the schema to the newest revision."""
    await asyncio.to_thread(migrate, sqlalchemy_url(url))
