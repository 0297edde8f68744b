"""The version has one source, `pyproject.toml`; everything that names it agrees with it."""

import asyncio
import re
import sys
import tomllib
from pathlib import Path

import httpx
import orjson
import pytest

from app import RELEASE
from tests.slowness import ALLOCATOR, SLOWNESS
from tests.talk import ok

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_installed_version_is_that_of_the_project() -> None:
    assert RELEASE == VERSION, "the environment is older than pyproject.toml: run `make .venv/.installed`"


def test_no_module_repeats_the_version() -> None:
    naming = [path for path in (ROOT / "app").rglob("*.py") if VERSION in path.read_text(encoding="utf-8")]
    assert naming == []


def test_the_changelog_describes_the_version() -> None:
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - 20\d\d-\d\d-\d\d$", CHANGELOG, re.MULTILINE)
    assert released[0] == VERSION
    assert released == sorted(released, key=lambda text: [int(part) for part in text.split(".")], reverse=True)


def test_the_changelog_says_what_to_do_on_an_upgrade() -> None:
    (section,) = re.findall(rf"^## \[{re.escape(VERSION)}\].*?(?=^## |\Z)", CHANGELOG, re.MULTILINE | re.DOTALL)
    parts = re.findall(r"^### (.+)$", section, re.MULTILINE)
    assert parts == ["Upgrading", "Added", "Changed", "Fixed"]


async def test_health_and_openapi_name_the_version(api: httpx.AsyncClient) -> None:
    assert ok(await api.get("/healthz"), 200) == {"status": "ok", "version": VERSION}
    assert ok(await api.get("/openapi.json"), 200)["info"]["version"] == VERSION


@pytest.mark.parametrize("command", ["api", "worker"])
async def test_the_log_begins_with_the_version(tmp_path: Path, database_url: str, command: str) -> None:
    arguments = (command, "--port", "0") if command == "api" else (command,)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", *arguments),
        cwd=tmp_path,
        env={**ALLOCATOR, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "MEMOBOOK_DATABASE_URL": database_url},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30 * SLOWNESS):
            assert process.stderr is not None
            line = orjson.loads(await process.stderr.readline())
    finally:
        process.kill()
        await process.wait()
    assert line["message"] == f"the {'API' if command == 'api' else 'worker'} starts"
    assert line["version"] == VERSION
