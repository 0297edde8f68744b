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
    """Run until a signal arrives; unfinished work is then released."""
    settings = load_settings()
    prompts = load_prompt_set(settings)
    configure_logging(settings.log_level)
    asyncio.run(_until_told(settings, prompts))
    return 0


async def _until_told(settings: Settings, prompts: PromptSet) -> None:
    working = asyncio.create_task(_work(settings, prompts))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    with suppress(asyncio.CancelledError):
        await working


async def _work(settings: Settings, prompts: PromptSet) -> None:
    """Wait for the database, then work until cancelled. Raises SettingsError if the database cannot be used."""
    database = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        await wait_for_schema(database)
    finally:
        await database.close()
    log.info("the worker starts", extra={"fields": {"version": RELEASE}})
    await run_worker(settings, prompts)
