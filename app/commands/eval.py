"""memobook eval: let the configured model make the memories of a conversation, and print them with statistics."""

import argparse
import asyncio

from app.commands.prompts import load_prompt_set
from app.demo.evaluate import add_eval_arguments, run_eval
from app.kit.settings import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for the conversation."""
    add_eval_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Make the memories and print them."""
    settings = load_settings()
    return asyncio.run(run_eval(options, settings, load_prompt_set(settings)))
