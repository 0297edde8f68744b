"""Vaults in folders, and what a person changes in their Markdown, as a shell runs it."""

from pathlib import Path

import pytest

from tests.commands.test_transfer import FILE, memobook, on_fresh_database

__all__ = ["on_fresh_database"]

VAULT = ("--format", "vault")
MARKDOWN = ("reindex", "--from-markdown")


@pytest.fixture
async def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A chat `c`, exported into a folder."""
    (tmp_path / "in.jsonl").write_bytes(FILE)
    assert await memobook("import", "in.jsonl", "--format", "jsonl", "--chat-id", "c") == 0
    assert await memobook("export", "c", *VAULT, "--folder", "vault/") == 0
    capsys.readouterr()
    return tmp_path / "vault"


def _read(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_folder_is_exported_as_it_was_imported(folder: Path, tmp_path: Path) -> None:
    assert await memobook("import", "vault", *VAULT, "--chat-id", "d") == 0
    assert await memobook("export", "d", *VAULT, "--folder", "other") == 0
    assert _read(folder) == _read(tmp_path / "other")
    assert Path("story/0001.md") in _read(folder)


async def test_changes_in_a_folder_reach_the_chat(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "memos.md").open("a") as page:
        page.write("## new\n\nThey met.\n")
    with (folder / "MEMORY.md").open("a") as page:
        page.write("- **boat**: blue\n- no fact\n")
    assert await memobook(*MARKDOWN, "vault", "--chat-id", "c", "--dry-run") == 0
    assert capsys.readouterr().out.splitlines() == [
        "add MEMORY.md, line 4: blue",
        "add memos.md, line 4: They met.",
        "note: memos.md, line 4: the heading 'new' is no part of the text and was not kept",
        "skipped: MEMORY.md, line 5: is no part of an item",
        "c: 0 edited, 2 added, 0 removed, 1 skipped (dry run: nothing was changed)",
    ]
    for added in (2, 0):
        assert await memobook(*MARKDOWN, "vault", "--chat-id", "c") == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"c: 0 edited, {added} added, 0 removed, 1 skipped"
    assert await memobook("export", "c", *VAULT, "--folder", "vault") == 0
    assert "- **boat**: blue ^fact-" in (folder / "MEMORY.md").read_text()
    memos = (folder / "memos.md").read_text()
    (folder / "memos.md").write_text(memos.replace("They met.", "They met again."))
    assert await memobook(*MARKDOWN, "vault", "--chat-id", "c") == 0
    assert await memobook("export", "c", *VAULT, "--output", "c.zip") == 0
    assert await memobook(*MARKDOWN, "c.zip", "--chat-id", "c") == 0
    assert capsys.readouterr().out.splitlines() == [
        "c: 1 edited, 0 added, 0 removed, 0 skipped",
        "c: 0 edited, 0 added, 0 removed, 0 skipped",
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*MARKDOWN, "vault"), "--from-markdown needs --chat-id"),
        (("reindex", "--dry-run"), "--chat-id and --dry-run need --from-markdown"),
        ((*MARKDOWN, "none", "--chat-id", "c"), "cannot read none: No such file or directory"),
        ((*MARKDOWN, "broken", "--chat-id", "c"), "The file is not a whole zip"),
        ((*MARKDOWN, ".", "--chat-id", "c"), "The folder is not a vault: it has no file 'state.json'."),
        ((*MARKDOWN, "vault", "--chat-id", "d"), "There is no chat 'd'."),
        (("import", ".", *VAULT, "--chat-id", "d"), "The folder is not a vault: it has no file 'state.json'."),
        (("import", "vault", "--format", "jsonl", "--chat-id", "d"), "cannot read vault: only the format vault can be"),
        (("export", "c", *VAULT, "--folder", "."), "cannot write .: The folder has files, but no 'marks.json'"),
        (("export", "c", *VAULT, "--folder", "broken"), "cannot write broken: It is not a folder."),
        (("export", "c", *VAULT, "--folder", "broken/a"), "cannot write broken/a: File exists"),
        (("export", "d", *VAULT, "--folder", "new"), "There is no chat 'd'."),
        (("export", "c", "--format", "jsonl", "--folder", "new"), "--folder: only the format vault can be a folder"),
    ],
)
async def test_a_failure_is_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    before = _read(tmp_path)
    assert await memobook(*arguments) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"memobook: {said}"), printed.err
    assert printed.err.count("\n") == 1
    assert _read(tmp_path) == before
