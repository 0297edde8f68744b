"""Data directories, and what the tests of the stack ask of the system."""

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import psutil
import pytest

from app.local.account import Account, obstacle
from app.local.stack import Stack
from tests.slowness import SLOWNESS

FAST = {"fsync": "off"}
"""What a test's PostgreSQL may do without."""

SERVICE = (sys.executable, str(Path(__file__).with_name("service.py")))

SOMEBODY = Account("namespace", 65_534, 65_534)
"""Who this process is to itself in a user namespace."""

as_root = pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="asks for root on Linux")
with_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or obstacle(SOMEBODY, []) is not None, reason="asks for root who may make user namespaces"
)


@pytest.fixture(autouse=True, scope="session")
def heeded_signals() -> None:
    """Restore signal handlers that the parent process ignores (`nohup`, a shell's `&`), so that children react."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def a_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="stack-", dir="/tmp")).resolve()
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that every user may pass through, as pytest's own are not."""
    with a_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
async def made_data() -> AsyncGenerator[Path]:
    """A data directory with a database: initdb takes longer than most tests."""
    with a_folder() as folder:
        async with servers_only(folder / "data"):
            pass
        yield folder / "data"


@pytest.fixture
def data(open_folder: Path, made_data: Path) -> Path:
    """A data directory of the test's own, in which nothing runs."""
    subprocess.run(["cp", "-a", str(made_data), str(open_folder)], check=True)
    return open_folder / "data"


def servers_only(data: Path, say: Callable[[str], None] = lambda _: None) -> Stack:
    return Stack(data, serve=False, migrate=False, postgres_settings=FAST, say=say)


def whole_stack(data: Path, port: int = 0, say: Callable[[str], None] = lambda _: None, **environment: str) -> Stack:
    return Stack(data, port=port, program=SERVICE, postgres_settings=FAST, environment=environment, say=say)


async def connect(stack: Stack) -> "asyncpg.Connection[asyncpg.Record]":
    return await asyncpg.connect(stack.urls.database_url.replace("+asyncpg", ""))


async def eventually(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait, for about 20 seconds at most on a usual machine, for something that other processes do."""
    for _ in range(round(1_000 * SLOWNESS)):
        answer = holds()
        if answer if isinstance(answer, bool) else await answer:
            return
        await asyncio.sleep(0.02)
    pytest.fail("it does not happen")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def child_named(part: str, parent: int | None = None) -> psutil.Process:
    """The newest child of `parent` (default: this process) whose command line holds `part`."""
    children = psutil.Process(parent).children()
    named = [child for child in children if any(part in word for word in child.cmdline())]
    return max(named, key=psutil.Process.create_time)


def processes_of(data: Path) -> list[psutil.Process]:
    """Every process that names something below `data` in its command line or works there, zombies left out."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.cwd()]
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            continue
        if any(str(data) in word for word in words):
            found.append(process)
    return found
