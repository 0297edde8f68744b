"""memobook worker: run a worker, which processes due work."""

import argparse
import asyncio
import logging
import signal
from contextlib import suppress

from app import RELEASE
from app.commands.database import wait_for_schema
from app.commands.prompts import load_prompt_set
from app.kit.db import Database
from app.kit.log.formatter import configure_logging
from app.kit.settings import Settings, load_settings
from app.summarising.prompt_folder import PromptSet
from app.worker import run_worker

log = logging.getLogger(__name__)


def add_arguments(_parser: argparse.ArgumentParser) -> None:
    """Add no options."""


def run(_options: argparse.Namespace) -> int:
    """Run until a signal arrives, and then until running items have ended; a second signal does not wait for them."""
    settings = load_settings()
    prompts = load_prompt_set(settings)
    configure_logging(settings.log_level)
    asyncio.run(_until_told(settings, prompts))
    return 0


async def _until_told(settings: Settings, prompts: PromptSet) -> None:
    started, stop = asyncio.Event(), asyncio.Event()
    working = asyncio.create_task(_work(settings, prompts, started, stop))

    def end() -> None:
        if (stop.is_set() or not started.is_set()) and not working.cancelling():
            working.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    with suppress(asyncio.CancelledError):
        await working


async def _work(settings: Settings, prompts: PromptSet, started: asyncio.Event, stop: asyncio.Event) -> None:
    """Wait for the database, then set `started` and work until `stop` is set.

    Raises SettingsError if the database cannot be used.
    """
    database = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        await wait_for_schema(database)
    finally:
        await database.close()
    log.info("the worker starts", extra={"fields": {"version": RELEASE}})
    started.set()
    await run_worker(settings, prompts, stop)
