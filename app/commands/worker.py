"""memobook worker: run a worker, which processes due work."""

import argparse
import asyncio
import logging
import signal
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

from app import RELEASE
from app.commands.database import check_embedder, wait_for_schema
from app.commands.prompts import load_prompt_set
from app.kit.db import Database
from app.kit.log.formatter import configure_logging
from app.kit.settings import Settings, SettingsError, load_settings
from app.local.directory import write_private
from app.summarising.prompt_folder import PromptSet
from app.worker import run_worker

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option for the file that names this worker."""
    parser.add_argument("--record", type=Path, metavar="FILE", help="write this worker's id, for memobook healthcheck")


def run(options: argparse.Namespace) -> int:
    """Run until a signal arrives, then wait for the running work items, at most for the configured grace time.

    A second signal ends the worker at once.
    """
    settings = load_settings()
    prompts = load_prompt_set(settings)
    configure_logging(settings.log_level)
    worker_id = uuid4()
    if options.record is not None:
        _write(options.record, worker_id)
    asyncio.run(_run_until_stopped(settings, prompts, worker_id))
    return 0


def _write(record: Path, worker_id: UUID) -> None:
    """Write the id of this worker. Raises SettingsError."""
    try:
        write_private(record, str(worker_id))
    except OSError as error:
        raise SettingsError(f"--record {record}: cannot be written ({error.strerror})") from None


async def _run_until_stopped(settings: Settings, prompts: PromptSet, worker_id: UUID) -> None:
    started, stop = asyncio.Event(), asyncio.Event()
    working = asyncio.create_task(_work(settings, prompts, worker_id, started, stop))

    def end() -> None:
        if (stop.is_set() or not started.is_set()) and not working.cancelling():
            working.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    with suppress(asyncio.CancelledError):
        await working


async def _work(
    settings: Settings, prompts: PromptSet, worker_id: UUID, started: asyncio.Event, stop: asyncio.Event
) -> None:
    """Wait for the database, then set `started` and work until `stop` is set.

    Raises SettingsError if the database cannot be used.
    """
    database = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        await wait_for_schema(database)
        await check_embedder(settings, database)
    finally:
        await database.close()
    log.info("the worker starts", extra={"fields": {"version": RELEASE}})
    started.set()
    await run_worker(settings, prompts, stop, worker_id=worker_id)
