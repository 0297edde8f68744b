"""The demo as people start it, on the beginning of its own conversation."""

import asyncio
import re
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.demo.run import CONVERSATION
from tests.local.conftest import processes_of

ROOT = Path(__file__).parents[2]
MESSAGES = 42


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that PostgreSQL's user can reach, as pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="demo-", dir="/tmp") as path:
        Path(path).chmod(0o711)
        yield Path(path).resolve()


async def run(place: Path, *options: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", "demo", "--once", "--data", str(place / "data"), "--port", "0", *options),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(120):
            out, error = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.communicate()
    return process.returncode, out.decode(), error.decode()


@pytest.fixture(scope="module")
async def shown(place: Path) -> str:
    """What the first run says."""
    beginning = CONVERSATION.read_text("utf-8").splitlines(keepends=True)[: MESSAGES + 1]
    (place / "short.jsonl").write_text("".join(beginning), "utf-8")
    code, out, error = await run(place, "--input", str(place / "short.jsonl"))
    assert (code, error) == (0, "")
    return out


def test_it_tells_how_far_it_is(shown: str) -> None:
    told = [int(found) for found in re.findall(r"^ +(\d+) messages · the context has [\d,]+ tokens$", shown, re.M)]
    assert len(told) >= 5
    assert told == sorted(told)
    assert told[-1] == MESSAGES


def test_the_memo_book_says_what_each_memo_covers_and_who_wrote_it(shown: str) -> None:
    assert "The memo book: 5 memos of 42 messages" in shown
    assert "   1  Sat 6 Sep 2025 · messages 1–8 · quoted, no model\n      · " in shown
    assert len(re.findall(r"quoted, no model", shown)) == 5


def test_memos_are_in_the_prompt_or_wait_for_the_cut_but_no_cut_was_forced(shown: str) -> None:
    book = shown.partition("The context of")[0]
    assert book.index("— in the prompt —") < book.index("— waiting: ")
    assert "no memo" not in book
    assert "their memos are missing" not in shown


def test_the_context_has_its_tokens_by_segment(shown: str) -> None:
    table = shown.partition("segment       tokens  holds\n")[2].partition("\n\n")[0]
    rows = {row[0]: int(row[1].replace(",", "")) for row in (line.split() for line in table.splitlines())}
    assert list(rows) == ["system", "character", "user", "instruction", "memos", "history", "(overhead)"]
    total = re.search(r"The context of the next call: ([\d,]+) of", shown)
    assert total is not None
    assert sum(rows.values()) == int(total[1].replace(",", ""))


def test_the_prompt_cache_saves_something_while_the_chat_goes_on(shown: str) -> None:
    row = re.search(r"^  these contexts, cached +[\d,]+ +(\d+)%", shown, re.M)
    assert row is not None
    assert 10 <= int(row[1]) < 60


async def test_a_second_run_on_the_same_data_plays_a_chat_of_its_own(place: Path, shown: str) -> None:
    (place / "tavern.jsonl").write_text(
        '{"user_name": "unused", "character_name": "unused", "chat_metadata": {}}\n'
        '{"name": "Quill", "is_user": false, "mes": "You are late."}\n'
        '{"name": "Nell", "is_user": true, "is_system": true, "mes": "Never mind the hat."}\n'
        '{"name": "Nell", "is_user": true, "mes": "It is raining."}\n'
    )
    code, out, error = await run(place, "--input", str(place / "tavern.jsonl"))
    assert (code, error) == (0, "")
    assert "into the chat demo …" in shown
    assert "Playing 2 messages (1 hidden left out) into the chat demo-2 …" in out
    assert "It is raining." in out
    assert "Never mind" not in out
    assert processes_of(place) == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot read {path}: No such file or directory"),
        (b"\xff", "{path}: not UTF-8 at byte 0"),
        (b"Hello", "{path}: line 1: not JSON at column 1: unexpected character, expected a JSON value"),
        (b"", "{path}: there is nothing to play in it"),
    ],
)
async def test_a_file_that_is_no_conversation_is_one_line(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / "chat.jsonl"
    if content is not None:
        path.write_bytes(content)
    code, out, error = await run(tmp_path, "--input", str(path))
    assert (code, out) == (1, "")
    assert error == f"memobook: {complaint.format(path=path)}\n"
    assert not (tmp_path / "data").exists()
