"""memobook up: run the whole service, with embedded servers where none are configured."""

import argparse
import asyncio
from functools import partial

from app.commands.arguments import add_address, add_data, say
from app.commands.database import check_embedder, naming_database
from app.commands.prompts import load_prompt_set
from app.kit.db import Database
from app.kit.settings import Settings, load_settings
from app.local.running import Urls
from app.local.stack import Stack
from app.local.up import run_up


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the data directory and the address."""
    add_data(parser)
    add_address(parser)


def run(options: argparse.Namespace) -> int:
    """Run until a signal arrives."""
    settings = load_settings()
    load_prompt_set(settings)
    stack = Stack(
        options.data,
        database_url=settings.database_url,
        redis_url=settings.redis_url,
        host=options.host,
        port=options.port,
        check=partial(_check_embedder, settings),
        say=say,
    )
    return asyncio.run(run_up(stack, say))


async def _check_embedder(settings: Settings, urls: Urls) -> None:
    """Check the embedding model before API and worker start.

    Without this check, both would report the same fault. The worker would be restarted again and again until the API,
    which cannot start either, ends the whole stack.
    """
    url = settings.model_copy(update={"database_url": urls.database_url}).sqlalchemy_url
    database = Database(url, pool_size=1)
    try:
        with naming_database():
            await check_embedder(settings, database)
    finally:
        await database.close()
