"""`memobook export` and `memobook import`, as a shell runs them."""

import asyncio
import os
import sys
from pathlib import Path

import asyncpg
import pytest

from app.cli import main
from tests.conftest import PROJECT

FILE = b'{"chat":{"user_name":"Mira"}}\n{"id":"m1","role":"user","content":"Hi.","sent_at":"2026-01-01T00:00:00Z"}\n'


@pytest.fixture(autouse=True)
def on_fresh_database(fresh_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMOBOOK_DATABASE_URL", fresh_database_url)
    (tmp_path / "broken").write_text("no")


async def memobook(*arguments: str) -> int:
    return await asyncio.to_thread(main, arguments)


def list_files() -> list[str]:
    """The names of the files in the working folder."""
    return [path.name for path in Path().iterdir()]


async def test_a_chat_is_exported_as_it_was_imported(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(FILE)
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    assert capfdbinary.readouterr().out == b"imported in.jsonl as the chat c\n"
    assert await memobook("export", "c", "--format", "jsonl", "--output", "out.jsonl") == 0
    assert await memobook("export", "c", "--format", "jsonl") == 0
    exported = (tmp_path / "out.jsonl").read_bytes()
    assert exported == capfdbinary.readouterr().out
    assert exported.splitlines()[1] == FILE.splitlines()[1]


async def test_an_export_replaces_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(FILE)
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    link, files = tmp_path / "latest", tmp_path / "files"
    link.symlink_to("files/out.jsonl")
    files.mkdir()
    for _ in ("new", "replaced"):
        assert await memobook("export", "c", "--format", "jsonl", "--output", "latest") == 0
        assert link.is_symlink()
        assert link.read_bytes().splitlines()[1] == FILE.splitlines()[1]
        assert [path.name for path in files.iterdir()] == ["out.jsonl"]
        link.write_bytes(b"old")


async def test_an_export_writes_into_a_pipe_and_keeps_it(tmp_path: Path) -> None:
    """A pipe with a name, and one that only a link such as `/dev/stdout` leads to."""
    (tmp_path / "in.jsonl").write_bytes(FILE)
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    os.mkfifo("named")
    reading, writing = os.pipe()
    (tmp_path / "link").symlink_to(f"/dev/fd/{writing}")
    for name, end in (("named", os.open("named", os.O_RDONLY | os.O_NONBLOCK)), ("link", reading)):
        assert await memobook("export", "c", "--format", "jsonl", "--output", name) == 0
        os.set_blocking(end, False)
        assert os.read(end, 65_536).splitlines()[1] == FILE.splitlines()[1]
        os.close(end)
    os.close(writing)
    assert sorted(list_files()) == ["broken", "in.jsonl", "link", "named"]


async def test_an_export_appends_to_the_file_of_standard_output(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(FILE)
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    for mode in ("wb", "ab"):
        with (tmp_path / "all.jsonl").open(mode) as file:
            for _ in range(2):
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "app.cli", "export", "c", "--format", "jsonl", "--output", "/dev/stdout"),
                    env={**os.environ, "PYTHONPATH": str(PROJECT)},
                    stdout=file,
                )
                assert await process.wait() == 0
    assert (tmp_path / "all.jsonl").read_bytes().splitlines()[1::2] == [FILE.splitlines()[1]] * 4


async def test_an_imported_chat_gets_vectors(
    fresh_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMOBOOK_EMBEDDINGS_BASE_URL", "http://127.0.0.1:9/v1")  # nothing is sent by the import
    monkeypatch.setenv("MEMOBOOK_EMBEDDINGS_MODEL", "tiny")
    (tmp_path / "in.jsonl").write_bytes(FILE)
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    connection = await asyncpg.connect(fresh_database_url.replace("+asyncpg", ""))
    due = await connection.fetch("SELECT layer, key FROM work")
    await connection.close()
    assert ("passages", "vectors") in [tuple(item) for item in due]


@pytest.mark.parametrize(
    "command", [["import", "in.jsonl", "--chat-id", "d"], ["export", "c"]], ids=["import", "export"]
)
async def test_a_command_works_in_a_process_of_its_own(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "in.jsonl").write_bytes(FILE)
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    arguments = [sys.executable, "-m", "app.cli", *command, "--format", "jsonl"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = await asyncio.create_subprocess_exec(*arguments, env=environment)
    assert await process.wait() == 0


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["export", "c"], b"memobook: cannot write standard output: Broken pipe\n"),
        (["import", "/dev/stdin", "--chat-id", "d"], b"memobook: cannot read /dev/stdin: must be a file, not a pipe\n"),
    ],
    ids=["export", "import"],
)
async def test_an_unusable_pipe_is_reported_in_one_line(tmp_path: Path, command: list[str], said: bytes) -> None:
    """An export whose reader ended, as with `| head`, and an import from a pipe."""
    (tmp_path / "in.jsonl").write_bytes(FILE)
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    reading, writing = os.pipe()
    os.close(reading)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "app.cli",
        *command,
        "--format",
        "jsonl",
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=writing,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writing)
    _, errors = await process.communicate(FILE)
    assert (process.returncode, errors) == (1, said)


@pytest.mark.parametrize("name", ["sillytavern", "jsonl", "transcript", "vault"])
async def test_a_file_that_is_too_large_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """With the limit of an import over HTTP, and before it is read."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**30)
    arguments = ("import", "large", "--format", name, "--chat-id", "c")
    said = "memobook: cannot read large: the file must have at most {} bytes (MEMOBOOK_MAX_IMPORT_BYTES)\n"
    assert await memobook(*arguments) == 1
    assert capsys.readouterr().err == said.format(64 * 1024 * 1024)
    monkeypatch.setenv("MEMOBOOK_MAX_IMPORT_BYTES", str(2**30 - 1))
    assert await memobook(*arguments) == 1
    assert capsys.readouterr().err == said.format(2**30 - 1)
    monkeypatch.setenv("MEMOBOOK_MAX_IMPORT_BYTES", "1024")
    (tmp_path / "large").write_bytes(FILE + b" " * (1_024 - len(FILE)))
    assert (await memobook(*arguments) == 0) == (name == "jsonl")
    assert ("large:" in capsys.readouterr().err) is False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", "c", "--output", "c.jsonl"], "There is no chat 'c'."),
        (["export", "c", "--output", "."], "cannot write .: Is a directory"),
        (["export", "a b"], "'a b' is not a chat id; use 1 to 200 characters of A-Z a-z 0-9 . _ : @ -"),
        (["import", "none", "--chat-id", "c"], "cannot read none: No such file or directory"),
        (["import", "broken", "--chat-id", "c"], "line 1: not JSON at column 1: "),
    ],
)
async def test_a_failure_is_one_line_and_leaves_no_file(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert await memobook(*arguments, "--format", "jsonl") == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"memobook: {said}"), printed.err
    assert printed.err.count("\n") == 1
    assert list_files() == ["broken"]
