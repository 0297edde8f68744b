"""Runs migrations over asyncpg, with a lock timeout, so that other queries do not queue behind a waiting migration."""

import asyncio

from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

import app.chats.models
import app.embeddings.models
import app.keys.models
import app.kit.usage
import app.kit.work_queue
import app.registry  # noqa: F401 - the tables register themselves
from alembic import context
from app.kit.db import Table

LOCK_TIMEOUT = "4s"


def run(connection: Connection) -> None:
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.commit()
    context.configure(connection=connection, target_metadata=Table.metadata, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()


async def connect_and_run() -> None:
    url = context.config.attributes["url"]
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        await connection.run_sync(run)
    await engine.dispose()


asyncio.run(connect_and_run())
