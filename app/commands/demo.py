"""memobook demo: play a conversation into the service and show the memory that results."""

import argparse
import asyncio

from app.commands.arguments import add_address, add_data
from app.commands.prompts import load_prompt_set
from app.demo.run import add_demo_arguments, run_demo
from app.kit.settings import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the data directory, the address, and the conversation."""
    add_data(parser)
    add_address(parser)
    add_demo_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Play the conversation, then serve until a signal arrives."""
    settings = load_settings()
    load_prompt_set(settings)
    return asyncio.run(run_demo(options, settings))
