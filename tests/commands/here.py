"""Commands in the process of the tests, for what does not depend on the process.

A process of its own spends seconds on importing the service. Each command also has tests that start one. Nothing ends
a command here that does not end, and a command that goes on to serve would change the logging of this process.
"""

import asyncio
import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from app.cli import main
from app.kit.settings import PREFIX


async def outcome_here(folder: Path, *command: str, **settings: str) -> tuple[int, str, str]:
    """The exit code of a command in `folder` with these settings alone, and what it said to stdout and stderr."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            patch.delenv(name)
        for name, value in settings.items():
            patch.setenv(name, value)
        with redirect_stdout(StringIO()) as said, redirect_stderr(StringIO()) as error:
            code = await asyncio.to_thread(main, command)
    return code, said.getvalue(), error.getvalue()


async def refusal_here(folder: Path, *command: str, **settings: str) -> str:
    """What a command says to stderr before it ends with 1."""
    code, _, error = await outcome_here(folder, *command, **settings)
    assert code == 1, error
    return error


async def said_here(folder: Path, *command: str, **settings: str) -> str:
    """What a command says to stdout before it ends with 0."""
    code, said, error = await outcome_here(folder, *command, **settings)
    assert code == 0, error
    return said
