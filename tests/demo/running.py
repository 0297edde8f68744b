"""The demo as people start it: a process of its own, which ends after showing what it has to show."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from app.demo.run import CONVERSATION
from tests.conftest import PROJECT
from tests.slowness import SLOWNESS


async def run(folder: Path, *options: str) -> tuple[int | None, str, str]:
    """Exit code, output and complaints of `memobook demo --once` on the data at `folder`."""
    return await run_command("demo", "--once", "--data", str(folder / "data"), "--port", "0", *options)


async def run_command(*arguments: str, env: Mapping[str, str] | None = None) -> tuple[int | None, str, str]:
    """Exit code, output and complaints of a command, by default in this process's environment."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", *arguments),
        cwd=PROJECT,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(120 * SLOWNESS):
            out, error = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()
    return process.returncode, out.decode(), error.decode()


def write_beginning(path: Path, messages: int, **settings: Any) -> str:
    """Write the beginning of the demo's conversation, so many messages with what lies between them; returns its path.

    `settings` are the chat's own besides its preset.
    """
    header, *lines = CONVERSATION.read_bytes().splitlines()
    chat = orjson.loads(header)
    chat["chat"]["settings"] |= settings
    kept = [orjson.dumps(chat)]
    for line in lines:
        messages -= bool(orjson.loads(line)["content"])
        if messages < 0:
            break
        kept.append(line)
    path.write_bytes(b"\n".join(kept))
    return str(path)
