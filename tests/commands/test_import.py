"""How `memobook` imports the module of a command."""

import asyncio
import sys

from tests.conftest import PROJECT

PROGRAM = """
import gc
from app.cli import main
before = gc.isenabled()
try:
    main(["migrate", "--help"])
finally:
    print(before, gc.isenabled(), gc.get_freeze_count() > len(gc.get_objects()))
"""


async def test_later_collections_leave_out_what_was_imported() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM), cwd=PROJECT, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert said.decode().splitlines()[-1] == "True True True"
