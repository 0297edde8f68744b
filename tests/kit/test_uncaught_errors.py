"""Errors that only Python itself reports are log lines like all others: JSON, without the words of an error."""

import asyncio
import sys
from asyncio.subprocess import PIPE

import orjson
import pytest

SECRET = "the letter under the stairs"
BEGIN = f"""
import asyncio, gc, threading
from app.kit.log.formatter import configure_logging
configure_logging("info")
def fail(_text=None):
    raise ValueError("{SECRET}") from KeyError("{SECRET}")
async def fail_later():
    fail()
class Fails:
    def __del__(self):
        fail()
    def __repr__(self):
        return "{SECRET}"
"""
PROGRAMS = {
    "main": ("fail()", 1, "the process ends because of an error"),
    "loop": ("asyncio.run(fail_later())", 1, "the process ends because of an error"),
    "thread": ("t = threading.Thread(target=fail); t.start(); t.join()", 0, "a thread ends because of an error"),
    "unraisable": ("Fails()", 0, "an error could not be raised"),
    "task": (
        "async def main():\n    asyncio.create_task(fail_later())\n    await asyncio.sleep(0)\n"
        "    await asyncio.sleep(0)\n    gc.collect()\nasyncio.run(main())",
        0,
        "Task exception was never retrieved",
    ),
    "callback": (
        f"async def main():\n    asyncio.get_running_loop().call_soon(fail, '{SECRET}')\n    await asyncio.sleep(0)\n"
        "asyncio.run(main())",
        0,
        "Exception in callback fail",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_an_uncaught_error_is_one_line_without_its_words(name: str) -> None:
    program, code, message = PROGRAMS[name]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", BEGIN + program, stderr=PIPE, stdout=PIPE)
    out, err = await process.communicate()
    assert (process.returncode, out) == (code, b"")
    assert SECRET.encode() not in err
    (line,) = [orjson.loads(line) for line in err.splitlines()]
    assert line["message"] == message
    assert line["error"] == ["ValueError", "KeyError"]
    assert any("in fail" in frame for frame in line["traceback"])


async def test_ctrl_c_is_not_an_error() -> None:
    program = BEGIN + "raise KeyboardInterrupt"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=PIPE)
    _, err = await process.communicate()
    assert b'"level"' not in err
