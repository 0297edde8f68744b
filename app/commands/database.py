"""Checks of the configured database before a command uses it."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.kit.db import Database
from app.kit.errors import Unavailable
from app.kit.settings import PREFIX, SettingsError
from app.operations.revisions import is_migrated

_NAME = f"{PREFIX}DATABASE_URL"


@contextmanager
def naming_database() -> Iterator[None]:
    """Raise a SettingsError that names the setting if the database is not available."""
    try:
        yield
    except Unavailable as error:
        raise SettingsError(f"{_NAME}: {error.detail}") from None


async def require_schema(database: Database) -> None:
    """Raise SettingsError if the database is not available or not migrated."""
    with naming_database():
        async with database.raw() as connection:
            if not await is_migrated(connection):
                raise SettingsError(f"{_NAME}: the database is not migrated; run memobook migrate")
