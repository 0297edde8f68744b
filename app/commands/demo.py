"""memobook demo: a conversation, and what is remembered of it."""

import argparse
import asyncio

from app.commands.arguments import add_address, add_data
from app.commands.prompts import load_prompt_book
from app.demo.run import add_demo_arguments, run_demo
from app.kit.settings import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the data lies, where to listen, and what to play."""
    add_data(parser)
    add_address(parser)
    add_demo_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Play it, then serve until a signal comes."""
    settings = load_settings()
    load_prompt_book(settings)
    return asyncio.run(run_demo(options, settings))
