"""`memobook keys`, as a shell runs it."""

import asyncio
from pathlib import Path

import pytest

from app.cli import main


@pytest.fixture
def on_fresh_database(fresh_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMOBOOK_DATABASE_URL", fresh_database_url)


async def memobook(*arguments: str) -> int:
    return await asyncio.to_thread(main, ["keys", *arguments])


@pytest.mark.usefixtures("on_fresh_database")
async def test_scopes_may_have_spaces_between_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert await memobook("create", "--scopes", "read, write") == 0
    key = capsys.readouterr().out.strip()
    assert key.startswith("mb_")
    assert await memobook("list") == 0
    listed = capsys.readouterr().out
    assert listed.startswith(f"{key.split('_')[1]}  default  read,write  ")
    assert listed.count("\n") == 1


@pytest.mark.usefixtures("on_fresh_database")
async def test_the_flag_user_scope_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--user-scope"]):
        assert await memobook("create", *arguments) == 0
    _, flagged = capsys.readouterr().out.split()
    assert await memobook("list") == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed if line.endswith("  user-scope")] == [flagged.split("_")[1]]
    assert len(listed) == 2


@pytest.mark.usefixtures("on_fresh_database")
async def test_an_invalid_key_request_prints_one_line_and_no_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert await memobook("create", "--scopes", "root") == 1
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "memobook: scopes: must be one or more of read, write, admin\n")
