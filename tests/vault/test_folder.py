"""A vault in a folder is read without leaving it, and written whole or not at all."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.vault.archive import MAX_BYTES
from app.vault.errors import InvalidVault
from app.vault.folder import FolderVault, check_target, write_folder
from app.vault.manifest import Manifest, write_manifest
from tests.vault.vaults import Files, zip_of


def _vault(*days: str, files: tuple[str, ...] = ()) -> Files:
    pages = {**{f"{day}.md": day.encode() for day in days}, "memos.md": b"memos", "story/0001.md": b"story"}
    names = (*pages, "marks.json", "state.json", *files)
    marks = write_manifest(Manifest("", names, {})).encode()
    return pages | {"marks.json": marks, "state.json": b"{}\n"}


def _write(files: Files, folder: Path) -> None:
    write_folder(io.BytesIO(zip_of(files)), folder)


def _read(folder: Path) -> Files:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_a_folder_is_made_and_replaced(tmp_path: Path) -> None:
    """Files of others stay, those of the former vault do not."""
    folder = tmp_path / "a" / "vault"
    _write(_vault("2026-01-01", "2026-01-02"), folder)
    assert _read(folder) == _vault("2026-01-01", "2026-01-02")
    others = {".git/config": b"git", "notes.md": b"mine", "2026-05-05.md": b"mine"}
    for name, content in others.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    _write(_vault("2026-01-02", "2026-01-03"), folder)
    assert _read(folder) == _vault("2026-01-02", "2026-01-03") | others
    assert [path.name for path in folder.parent.iterdir()] == ["vault"]


def test_a_repository_without_files_takes_a_vault(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    _write(_vault("2026-01-01"), tmp_path)
    assert _read(tmp_path) == _vault("2026-01-01")


def test_only_pages_of_a_former_vault_are_deleted(tmp_path: Path) -> None:
    """Whatever its marks.json says."""
    folder = tmp_path / "vault"
    _write(_vault(files=("../other.md", ".git/config", "notes.md", "/etc/passwd")), folder)
    others = [tmp_path / "other.md", folder / ".git" / "config", folder / "notes.md"]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    _write(_vault("2026-01-01"), folder)
    assert {path.read_text() for path in others} == {"mine"}


def _with_files(folder: Path) -> None:
    (folder / "notes.md").write_text("mine")


def _with_link(folder: Path) -> None:
    _write(_vault(), folder)
    (folder / "story" / "0001.md").unlink()
    (folder / "story").rmdir()
    (folder / "story").symlink_to(folder.parent)


def _with_folder(folder: Path) -> None:
    _write(_vault(), folder)
    (folder / "memos.md").unlink()
    (folder / "memos.md").mkdir()


@pytest.mark.parametrize(
    ("make", "words"),
    [(_with_files, "it is no vault"), (_with_link, "its folder is a link"), (_with_folder, r"memos\.md: is a folder")],
)
def test_a_folder_that_is_refused_stays(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    make(folder)
    before = _read(tmp_path)
    with pytest.raises(InvalidVault, match=words):
        _write(_vault("2026-01-01"), folder)
    assert _read(tmp_path) == before


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidVault, match="not a folder"):
        check_target(tmp_path / "file")


def test_an_export_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Neither beside a former vault nor alone."""
    old, broken = tmp_path / "old", bytearray(zip_of(_vault("2026-01-01")))
    broken[45] ^= 0xFF  # a byte of the first entry
    _write(_vault(), old)
    for folder in (old, tmp_path / "new"):
        with pytest.raises(Exception, match=r"CRC|decompress|invalid"):
            write_folder(io.BytesIO(bytes(broken)), folder)
    assert _read(tmp_path) == {f"old/{name}": content for name, content in _vault().items()}
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_a_folder_is_not_left_when_it_is_read(tmp_path: Path) -> None:
    folder, secret = tmp_path / "vault", tmp_path / "secret"
    secret.write_text("secret")
    _write(_vault(), folder)
    (folder / "2026-01-01.md").symlink_to(secret)
    (folder / "2026-01-02.md").symlink_to("memos.md")
    os.mkfifo(folder / "2026-01-03.md")
    vault = FolderVault(folder)
    for name in ("2026-01-01.md", "../secret", str(secret)):
        with pytest.raises(InvalidVault, match="outside of the folder"):
            list(vault.read_lines(name))
    assert list(vault.read_lines("2026-01-02.md")) == [b"memos"]
    with pytest.raises(InvalidVault, match="must be a file"):
        list(vault.read_lines("2026-01-03.md"))
    with pytest.raises(InvalidVault, match=r"has no file 'a\.md'"):
        list(vault.read_lines("a.md"))
    with pytest.raises(InvalidVault, match=r"has no file 'state\.json'"):
        FolderVault(tmp_path)


def test_a_page_of_a_folder_is_as_large_as_a_zip_may_be(tmp_path: Path) -> None:
    """The state has no limit, because an export writes a larger one, too."""
    _write(_vault(), tmp_path / "vault")
    for name in ("summary.md", "state.json"):
        with (tmp_path / "vault" / name).open("wb") as file:
            file.truncate(MAX_BYTES + 1)
    vault = FolderVault(tmp_path / "vault")
    with pytest.raises(InvalidVault, match=r"summary\.md: is larger than 1,073,741,824 bytes"):
        next(vault.read_lines("summary.md"))
    assert next(vault.read_lines("state.json"))
