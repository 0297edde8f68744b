"""The README is true: its commands exist, and its walk from nothing to a context works as it is written."""

import asyncio
import json
import re
import shutil
import socket
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from app.cli import COMMANDS
from app.kit.settings import PREFIX, Settings
from app.main import create_app
from app.registry import LAYERS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
(_, ANSWER) = re.findall(r"^```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
"""The messages of the last answer of the walk, with their roles; a line in parentheses is left out."""
(WALK,) = (block for block in BLOCKS if "curl" in block)


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """An API without any key on loopback; yields host and port."""
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_config=None, timeout_graceful_shutdown=5))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"{host}:{port}"
        finally:
            server.should_exit = True
            await running


async def run_shell(script: str, home: Path) -> str:
    """The output of `script`, in which a curl that gets an error ends it."""
    (home / ".curlrc").write_text("fail\nsilent\nshow-error\nmax-time = 30\nnoproxy = *\n")
    process = await asyncio.create_subprocess_exec(
        *("sh", "-euc", script),
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, error = await process.communicate()
    assert (process.returncode, error.decode()) == (0, ""), out
    return out.decode()


def documents(text: str) -> Iterator[Any]:
    """Return the consecutive JSON documents in `text`."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        found, at = decoder.raw_decode(text, at)
        yield found


def test_it_shows_the_demo_tests_compose_and_the_walk_in_order() -> None:
    first, second, third = BLOCKS
    assert [line.split("#")[0].split() for line in first.splitlines()] == [["make", "demo"], ["make", "test"]]
    assert "docker compose up" in second
    assert third == WALK
    assert len(WALK.splitlines()) <= 10


@pytest.mark.skipif(shutil.which("curl") is None, reason="asks for curl")
async def test_the_walk_leads_from_an_empty_service_to_a_context(fresh_database_url: str, tmp_path: Path) -> None:
    settings = Settings(database_url=fresh_database_url, _env_file=None)
    assert "127.0.0.1:8000" in WALK
    async with serving(settings) as address:
        answers = list(documents(await run_shell(WALK.replace("127.0.0.1:8000", address), tmp_path)))
    chat, _, memo, last = answers
    assert chat["characters"][0]["name"] == "Kai"
    assert memo["origin"] == "person"
    prompt, *talk = last["context"]["messages"]
    assert memo["highlights"][0]["text"] in prompt["content"]
    assert [message["role"] for message in talk] == ["user", "assistant", "user"]
    assert talk[-1]["content"] == "Do you still think of the sea?"
    shown = [line.split(maxsplit=1) for line in re.split(r"^(?=\w)", ANSWER, flags=re.MULTILINE) if line]
    assert [role for role, _ in shown] == [message["role"] for message in (prompt, *talk)]
    for (_, text), message in zip(shown, (prompt, *talk), strict=True):
        lines = [re.escape(line.strip()) for line in text.splitlines() if not line.strip().startswith("(")]
        assert re.search("(?s)" + ".*".join(lines), message["content"])


@pytest.mark.skipif(shutil.which("curl") is None, reason="asks for curl")
async def test_all_of_the_walk_but_the_memo_can_be_sent_again(fresh_database_url: str, tmp_path: Path) -> None:
    settings = Settings(database_url=fresh_database_url, _env_file=None)
    async with serving(settings) as address:
        script = WALK.replace("127.0.0.1:8000", address)
        *_, first = documents(await run_shell(script, tmp_path))
        *_, again = documents(await run_shell(script, tmp_path))
    assert (first["created"], again["created"]) == (1, 0)
    assert again["messages"] == first["messages"]


def test_every_command_it_names_exists() -> None:
    named = set(re.findall(r"`memobook ([a-z]+)", README))
    assert {"up", "demo"} <= named <= COMMANDS.keys()


def test_every_setting_it_names_exists() -> None:
    named = set(re.findall(rf"{PREFIX}([A-Z_]+[A-Z])", README))
    assert named
    assert named <= {name.upper() for name in Settings.model_fields}


def test_the_architecture_has_a_line_for_every_package() -> None:
    described = re.findall(r"^\| `([a-z]+)` \|", ARCHITECTURE, re.MULTILINE)
    packages = {path.parent.name for path in (ROOT / "app").glob("*/__init__.py")}
    assert len(described) == len(set(described))
    assert set(described) == packages - {layer.name for layer in LAYERS}


def test_one_line_points_to_the_packages_of_the_layers() -> None:
    (line,) = re.findall(r"^\| one package for each memory layer \| .*$", ARCHITECTURE, re.MULTILINE)
    linked = re.findall(r"\]\((.*?)\)", line)
    assert linked == ["../app/registry.py", "layers.md"]
    assert all((ROOT / "docs" / path).is_file() for path in linked)
    assert all((ROOT / "app" / layer.name / "layer.py").is_file() for layer in LAYERS)
