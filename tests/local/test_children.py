import asyncio
import signal
import sys
from pathlib import Path

import psutil
import pytest

from app.local.children import Child, how_it_ended, next_wait_s
from app.local.command import Command, run_to_end
from app.local.errors import LocalError
from app.local.leftovers import PidFile
from tests.local.conftest import eventually


def command(script: str, log: Path | None = None, grace_s: float = 10.0) -> Command:
    return Command(
        name="the child",
        arguments=(sys.executable, "-S", "-c", script),
        environment={},
        log=log,
        stop_signals=((signal.SIGTERM, grace_s),),
    )


async def never() -> bool:
    return False


def test_waits_double_from_half_a_second_to_thirty() -> None:
    waits = [0.0]
    for _ in range(8):
        waits.append(next_wait_s(waits[-1], ran_s=1.0))
    assert waits[1:] == [0.5, 1, 2, 4, 8, 16, 30, 30]


def test_a_minute_of_work_resets_the_wait() -> None:
    assert next_wait_s(30.0, ran_s=59.9) == 30.0
    assert next_wait_s(30.0, ran_s=60.0) == 0.5


def test_an_exit_code_is_described_in_words() -> None:
    assert how_it_ended(3) == "exit code 3"
    assert how_it_ended(-9) == "killed by SIGKILL"


async def test_a_child_that_ends_early_raises_with_its_last_output(tmp_path: Path) -> None:
    child = Child(
        command("import sys; sys.exit('no such thing')", log=tmp_path / "log"),
        pid_file=PidFile(tmp_path / "child.pid", tmp_path),
        say=pytest.fail,
    )
    with pytest.raises(LocalError, match=r"^the child did not start \(exit code 1\): no such thing$"):
        async with child.running(never):
            pytest.fail("it was never ready")
    assert not (tmp_path / "child.pid").exists()


async def test_a_child_that_does_not_get_ready_is_stopped_in_time(tmp_path: Path) -> None:
    child = Child(
        command("import signal; signal.pause()"),
        pid_file=PidFile(tmp_path / "child.pid", tmp_path),
        say=pytest.fail,
    )
    with pytest.raises(LocalError, match=r"^the child was not ready within 0\.1 s$"):
        async with child.running(never, timeout_s=0.1):
            pytest.fail("it was never ready")


async def test_a_child_that_dies_starts_again_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    runs = tmp_path / "runs"
    script = f"import signal; open({str(runs)!r}, 'a').write('x'); "
    script += f"len(open({str(runs)!r}).read()) > 1 and signal.pause()"
    child = Child(command(script), pid_file=PidFile(tmp_path / "child.pid", tmp_path), say=said.append)
    async with child.running():
        await eventually(lambda: runs.exists() and runs.read_text() == "xx")
    assert said == ["the child ended (exit code 0); it starts again in 0.5 s."]


async def test_a_child_that_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    script = f"import signal; signal.signal(15, signal.SIG_IGN); open({str(deaf)!r}, 'w'); signal.pause()"
    child = Child(command(script, grace_s=0.1), pid_file=PidFile(tmp_path / "child.pid", tmp_path), say=pytest.fail)
    async with child.running():
        await eventually(deaf.exists)


async def test_a_command_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    script = f"import os, signal; open({str(begun)!r}, 'w').write(str(os.getpid())); signal.pause()"
    running = asyncio.create_task(run_to_end(command(script)))
    await eventually(lambda: begun.exists() and begun.read_text() != "")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not psutil.pid_exists(int(begun.read_text()))


async def test_a_long_log_makes_room(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 4_000_001)
    assert await run_to_end(command("print('hello')", log=log)) == 0
    assert log.read_text() == "hello\n"
    assert (tmp_path / "log.old").stat().st_size == 4_000_001
