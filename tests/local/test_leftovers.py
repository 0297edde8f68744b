import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.local.leftovers import PidFile, end_leftovers
from app.local.processes import Process, find_process, started_by_ps


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits."""
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.communicate()


@pytest.fixture
def file(tmp_path: Path) -> PidFile:
    return PidFile(tmp_path / "worker.pid", tmp_path)


async def test_a_leftover_is_ended_by_its_own_signal(file: PidFile, bystander: subprocess.Popen[bytes]) -> None:
    said: list[str] = []
    file.write(bystander.pid, signal.SIGQUIT)
    await end_leftovers([file], said.append)
    assert bystander.wait() == -signal.SIGQUIT
    assert not file.path.exists()
    assert said == [f"Ending process {bystander.pid} (worker), left over from a run that was killed."]


async def test_a_process_that_was_given_the_pid_later_is_left_alone(
    file: PidFile, bystander: subprocess.Popen[bytes]
) -> None:
    file.write(bystander.pid, signal.SIGTERM)
    fields = json.loads(file.path.read_text())
    file.path.write_text(json.dumps({**fields, "started": fields["started"] + "0"}))
    await end_leftovers([file], pytest.fail)
    assert bystander.poll() is None
    assert not file.path.exists()


async def test_a_copy_of_the_data_leaves_the_original_alone(
    file: PidFile, tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    file.write(bystander.pid, signal.SIGTERM)
    await end_leftovers([PidFile(file.path, tmp_path / "copy")], pytest.fail)
    assert bystander.poll() is None


@pytest.mark.parametrize(
    "text",
    ["", "12", "{}", '{"pid": 1, "started": "", "stop_signal": 15}', '{"pid": "x"}', '{"pid": 1, "started": null}'],
)
async def test_an_invalid_pid_file_is_removed(file: PidFile, text: str) -> None:
    file.path.write_text(text)
    await end_leftovers([file], pytest.fail)
    assert not file.path.exists()


def test_a_process_is_known_by_its_start(bystander: subprocess.Popen[bytes]) -> None:
    process = find_process(bystander.pid)
    assert process is not None
    assert process.lives()
    assert not Process(process.pid, process.started + "0").lives()


def test_a_process_that_was_not_waited_for_counts_as_gone(bystander: subprocess.Popen[bytes]) -> None:
    process = find_process(bystander.pid)
    assert process is not None
    bystander.kill()
    os.waitid(os.P_PID, bystander.pid, os.WEXITED | os.WNOWAIT)
    assert not process.lives()
    assert started_by_ps(bystander.pid) is None


def test_ps_also_returns_the_start_of_a_process() -> None:
    started = started_by_ps(os.getpid())
    assert started is not None
    assert started == started_by_ps(os.getpid())


def test_no_process_is_found_for_an_unused_pid() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    assert find_process(process.pid) is None
    assert started_by_ps(process.pid) is None


async def test_a_child_that_has_ended_already_is_not_recorded(file: PidFile) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "")
    await process.wait()
    file.write(process.pid, signal.SIGTERM)
    assert not file.path.exists()
