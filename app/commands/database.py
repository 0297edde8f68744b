"""Whether the configured database can be worked with, looked at before the work begins."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.kit.db import Database
from app.kit.errors import Unavailable
from app.kit.settings import PREFIX, SettingsError
from app.operations.revisions import is_migrated

_NAME = f"{PREFIX}DATABASE_URL"


@contextmanager
def naming_database() -> Iterator[None]:
    """Name the setting when the database is not available. Raises SettingsError."""
    try:
        yield
    except Unavailable as error:
        raise SettingsError(f"{_NAME}: {error.detail}") from None


async def require_schema(database: Database) -> None:
    """Raises SettingsError for a database that is not there or not migrated."""
    with naming_database():
        async with database.raw() as connection:
            if not await is_migrated(connection):
                raise SettingsError(f"{_NAME}: the database is not migrated; run memobook migrate")
