"""Runs migrations over asyncpg, with a lock timeout, so that other queries do not queue behind a waiting migration.

The models are imported only to compare them with the database: their import takes several times as long as a migration.
"""

import asyncio
from importlib import import_module

from sqlalchemy import Connection, MetaData, text
from sqlalchemy.ext.asyncio import create_async_engine

from alembic import context

LOCK_TIMEOUT = "4s"

MODELS = (
    "app.chats.models",
    "app.embeddings.models",
    "app.keys.models",
    "app.kit.usage",
    "app.kit.work_queue",
    "app.registry",
)
"""The modules whose tables register themselves; the registry imports those of the layers."""


def import_models() -> MetaData:
    """Return the tables of all models."""
    for name in MODELS:
        import_module(name)
    tables: MetaData = import_module("app.kit.db").Table.metadata
    return tables


def run(connection: Connection) -> None:
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.commit()
    models = import_models() if context.config.attributes["compares_models"] else None
    context.configure(connection=connection, target_metadata=models, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()


async def connect_and_run() -> None:
    url = context.config.attributes["url"]
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        await connection.run_sync(run)
    await engine.dispose()


asyncio.run(connect_and_run())
