"""memobook api: run the API in this process, without a worker or servers."""

import argparse
import asyncio
import signal

import uvicorn

from app.commands.arguments import add_address
from app.commands.database import wait_for_schema
from app.commands.prompts import load_prompt_set
from app.keys.service import ensure_admin_key, has_keys
from app.kit.clock import system_clock
from app.kit.db import Database
from app.kit.settings import Settings, SettingsError, configure_logging, load_settings
from app.main import create_app

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the address to listen on."""
    add_address(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal arrives."""
    settings = load_settings()
    load_prompt_set(settings)
    configure_logging(settings.log_level)
    # The first process of a container ignores SIGTERM unless it handles it, and this may wait for the database.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asyncio.run(_prepare(settings, options.host))
    uvicorn.run(
        create_app(settings),
        host=options.host,
        port=options.port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=10,
    )
    return 0


async def _prepare(settings: Settings, host: str) -> None:
    """Check the database and register the environment's admin key.

    Raises SettingsError if the database is not ready, or if `host` is not loopback and no key exists.
    """
    database = Database(settings.sqlalchemy_url, pool_size=2)
    try:
        await wait_for_schema(database)
        async with database.unit_of_work() as db_session:
            if settings.admin_key:
                await ensure_admin_key(db_session, settings.admin_key.get_secret_value(), system_clock())
            if host not in LOOPBACK and not await has_keys(db_session):
                raise SettingsError(
                    f"--host {host}: without a key the API only listens on 127.0.0.1;"
                    " set MEMOBOOK_ADMIN_KEY or run memobook keys create"
                )
    finally:
        await database.close()
