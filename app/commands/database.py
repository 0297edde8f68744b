"""Checks of the configured database before a command uses it."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from app.embeddings.configured import make_embedder
from app.embeddings.service import check_at_start
from app.kit.clock import system_clock
from app.kit.db import Database
from app.kit.errors import DatabaseRejected, Unavailable
from app.kit.settings import PREFIX, Settings, SettingsError
from app.operations.revisions import is_migrated

log = logging.getLogger(__name__)

RETRY_S: Final = 2.0
"""The time between two attempts to reach the database at the start, in seconds."""

_NAME = f"{PREFIX}DATABASE_URL"


@contextmanager
def naming_database() -> Iterator[None]:
    """If the database is not available, raise a SettingsError that names MEMOBOOK_DATABASE_URL."""
    try:
        yield
    except Unavailable as error:
        raise SettingsError(f"{_NAME}: {error.detail}") from None


async def wait_for_schema(database: Database, *, retry_s: float = RETRY_S) -> None:
    """Wait until the database is available. Raises SettingsError if it rejects this process or is not migrated.

    A process often starts before its database. If it exited, its supervisor would start it again and again, with longer
    and longer pauses.
    """
    is_logged = False
    while True:
        try:
            async with database.raw() as connection:
                if await is_migrated(connection):
                    return
        except DatabaseRejected as error:
            raise SettingsError(f"{_NAME}: {error.detail}") from None
        except Unavailable as error:
            if not is_logged:
                log.warning("%s: %s Waiting for it.", _NAME, error.detail)
            is_logged = True
            await asyncio.sleep(retry_s)
        else:
            raise SettingsError(f"{_NAME}: the database is not migrated; run memobook migrate")


async def check_embedder(settings: Settings, database: Database) -> None:
    """Compare the configured embedding model with the recorded one; if none is recorded, record the configured one.

    Raises SettingsError if the stored vectors are of another model.
    """
    embedder = make_embedder(settings)
    if embedder is None:
        return
    try:
        await check_at_start(database, embedder, system_clock)
    finally:
        await embedder.aclose()
