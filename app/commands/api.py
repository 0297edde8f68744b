"""memobook api: run the API, in this process or in several. It starts no worker, PostgreSQL or Redis."""

import argparse
import asyncio
import logging
import os
import signal
import threading
from multiprocessing import parent_process
from typing import Any

import uvicorn
from fastapi import FastAPI

from app import RELEASE
from app.commands.arguments import add_address
from app.commands.database import check_embedder, wait_for_schema
from app.commands.prompts import load_prompt_set
from app.keys.service import ensure_admin_key, has_keys
from app.kit.clock import system_clock
from app.kit.db import Database
from app.kit.log.formatter import configure_logging
from app.kit.settings import Settings, SettingsError, load_settings
from app.main import create_app
from app.web.connections import ConnectionLimits
from app.web.open_files import allow_open_files
from app.web.protocol import bounded_protocol

log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "::1", "localhost")
RESERVED_FILES = 100
"""How many open files are kept free for purposes other than connections of clients and of the database pool."""

MAX_PROCESSES = 64

SILENT_S = 30
"""A process that does not respond to its parent for this many seconds is replaced. A start takes a few seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the address to listen on and the number of processes."""
    add_address(parser)
    parser.add_argument(
        "--workers",
        type=_processes,
        default=1,
        metavar="N",
        help="number of API processes that share the port (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until a signal arrives. With several processes, this one starts them and replaces those that end."""
    settings = load_settings()
    load_prompt_set(settings)
    configure_logging(settings.log_level)
    # Linux delivers SIGTERM to the first process of a container only if the process has a handler for the signal.
    # Without this handler, the process could not be stopped while it waits for the database.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    asyncio.run(_prepare(settings, options.host))
    log.info("the API starts", extra={"fields": {"version": RELEASE}})
    address = {"host": options.host, "port": options.port}
    if options.workers == 1:
        uvicorn.run(create_app(settings), **address, **server_options(settings))
    else:
        uvicorn.run(
            f"{__name__}:create_child_app",
            factory=True,
            workers=options.workers,
            timeout_worker_healthcheck=SILENT_S,
            **address,
            **server_options(settings),
        )
    return 0


def create_child_app() -> FastAPI:
    """Return the application of one of several API processes. The process ends when its parent has ended."""
    settings = load_settings()
    configure_logging(settings.log_level)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return create_app(settings)


def _end_with_parent() -> None:
    """End this process when its parent has ended. A parent that is killed cannot end its children itself."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _processes(text: str) -> int:
    """Return the value of `--workers`. Raises ArgumentTypeError."""
    if not text.isdigit() or not 1 <= int(text) <= MAX_PROCESSES:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {MAX_PROCESSES}")
    return int(text)


def server_options(settings: Settings) -> dict[str, Any]:
    """Return uvicorn's options, without the address."""
    max_connections = allow_open_files(settings.max_connections, reserved=settings.database_pool + RESERVED_FILES)
    if max_connections < settings.max_connections:
        log.warning("the limit of open files allows only %d connections (ulimit -n)", max_connections)
    limits = ConnectionLimits(
        max_connections=max_connections,
        head_s=settings.head_timeout_s,
        body_s=settings.body_timeout_s,
        write_s=settings.write_timeout_s,
    )
    return {
        "loop": "uvloop",
        "http": bounded_protocol(limits),
        "ws": "none",
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "proxy_headers": False,
        "timeout_graceful_shutdown": 10,
    }


async def _prepare(settings: Settings, host: str) -> None:
    """Wait for the database, check it, and register the environment's admin key.

    Raises SettingsError if the database rejects this process or is not migrated, if the stored vectors are of another
    embedding model, or if `host` is not loopback and no key was ever created.
    """
    database = Database(settings.sqlalchemy_url, pool_size=2)
    try:
        await wait_for_schema(database)
        await check_embedder(settings, database)
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
