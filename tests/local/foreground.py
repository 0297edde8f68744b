"""Run `memobook up` with a fake service in a process of its own. Arguments: DATA PORT."""

import asyncio
import sys
from pathlib import Path

from app.local.stack import Stack
from app.local.up import run_up
from tests.local.conftest import FAST, SERVICE


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    stack = Stack(Path(sys.argv[1]), port=int(sys.argv[2]), program=SERVICE, postgres_settings=FAST, say=say)
    sys.exit(asyncio.run(run_up(stack, say)))
