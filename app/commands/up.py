"""memobook up: run the whole service, with embedded servers where none are configured."""

import argparse
import asyncio

from app.commands.arguments import add_address, add_data, say
from app.commands.prompts import load_prompt_set
from app.kit.settings import load_settings
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
        say=say,
    )
    return asyncio.run(run_up(stack, say))
