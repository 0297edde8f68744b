"""Provides the demo with a key for the API."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.keys.service import CreatedKey, create_key, has_keys, revoke_key
from app.kit.auth import DEFAULT_TENANT
from app.kit.clock import system_clock
from app.kit.db import Database
from app.kit.settings import Settings


@asynccontextmanager
async def access(settings: Settings) -> AsyncGenerator[str | None]:
    """Yield a key for the API that uses the database of `settings`, or None if no key is needed.

    The key is the environment's admin key if it is set. Otherwise, if any key exists, a new key is created, which is
    revoked at the end of the block.
    """
    if settings.admin_key:
        yield settings.admin_key.get_secret_value()
        return
    database = Database(settings.sqlalchemy_url, pool_size=2)
    try:
        own = await _create_if_needed(database)
        try:
            yield own.text if own else None
        finally:
            if own:
                async with database.unit_of_work() as db_session:
                    await revoke_key(db_session, own.key_id, system_clock())
    finally:
        await database.close()


async def _create_if_needed(database: Database) -> CreatedKey | None:
    async with database.unit_of_work() as db_session:
        if not await has_keys(db_session):
            return None
        return await create_key(db_session, DEFAULT_TENANT, ["read", "write"], system_clock())
