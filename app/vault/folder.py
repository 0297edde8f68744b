"""A vault as a folder. Reading never leaves the folder; writing replaces no file before all new files are written."""

import os
import re
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from app.vault.archive import MAX_BYTES as MAX_DATA_BYTES
from app.vault.archive import STATE
from app.vault.errors import InvalidVault
from app.vault.items import PageError
from app.vault.manifest import MARKS, MAX_BYTES, read_manifest
from app.vault.state_file import MAX_LINE_BYTES

_DELETABLE = re.compile(r"\d{4}-\d{2}-\d{2}\.md|story/\d{4,}\.md")
"""The names of the pages for days and chapters. A vault of a chat can have such a page that a later vault has not.

When a vault is written over a former one, only such pages are deleted, because the list of files in the former
`marks.json` is not trusted.
"""


class FolderVault:
    """A vault in a folder. Only the files that are asked for are read, and none outside of the folder."""

    def __init__(self, folder: Path) -> None:
        """Open a folder. Raises InvalidVault if it is no vault."""
        self._folder = folder.resolve()
        if not (self._folder / STATE).exists():
            raise InvalidVault(f"The folder is not a vault: it has no file {STATE!r}.")

    def list_names(self) -> list[str]:
        """Return the names of the files at the top of the folder, sorted, without hidden ones."""
        return sorted(path.name for path in self._folder.iterdir() if not path.name.startswith(".") and path.is_file())

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file, each with its line break, in bounded memory. Raises InvalidVault.

        A page can be as large as all files of a zip together (`archive.MAX_BYTES`). The state has no limit, because the
        export to a folder has none: it has a copy of each line and checkpoint of the chat.
        """
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder):
            raise InvalidVault(f"{name}: is a link to something outside of the folder.")
        try:
            about = path.stat()
            if not stat.S_ISREG(about.st_mode):  # opening a pipe would wait
                raise InvalidVault(f"{name}: must be a file.")
            if name != STATE and about.st_size > MAX_DATA_BYTES:
                raise InvalidVault(f"{name}: is larger than {MAX_DATA_BYTES:,} bytes.")
            with path.open("rb") as file:
                while line := file.readline(MAX_LINE_BYTES):
                    yield line
        except FileNotFoundError:
            raise InvalidVault(f"The vault has no file {name!r}.") from None
        except OSError as error:
            raise InvalidVault(f"{name}: cannot be read ({error.strerror}).") from None


def check_target(folder: Path) -> None:
    """Check that a vault can be written into a folder. Raises InvalidVault.

    The folder must be a vault, have only hidden files (such as those of git), or not exist yet.
    """
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise InvalidVault("It is not a folder.")
    is_used = any(not path.name.startswith(".") for path in folder.iterdir())
    if is_used and not (folder / MARKS).is_file():
        raise InvalidVault(f"The folder has files, but no {MARKS!r}: it is no vault.")


def write_folder(file: IO[bytes], folder: Path) -> None:
    """Write the files of a vault (an open zip) into a folder; delete the pages that only the folder's former vault has.

    Other files stay. All files are first written into a temporary folder and then moved to their places. The old
    `state.json` is deleted before the first move, and the new one is moved last, so an incomplete folder is no vault.
    Raises InvalidVault, OSError.
    """
    check_target(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as part:
            new = Path(part) / "vault"
            _unpack(file, new)
            new.rename(folder)
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".memobook.") as part:
        names = _unpack(file, Path(part))
        former = _list_former(folder)
        _check_files(folder, {*names, *former})
        (folder / STATE).unlink(missing_ok=True)
        for name in sorted(names, key=lambda name: name == STATE):
            (folder / name).parent.mkdir(exist_ok=True)
            (Path(part) / name).replace(folder / name)
        for name in former - set(names):
            (folder / name).unlink(missing_ok=True)


def _unpack(file: IO[bytes], to: Path) -> list[str]:
    """Write the files of a vault that an export has just made, and return their names."""
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as entry, (to / name).open("xb") as written:
                while chunk := entry.read(1024 * 1024):
                    written.write(chunk)
                written.flush()
                os.fsync(written.fileno())
        return archive.namelist()


def _list_former(folder: Path) -> set[str]:
    """Return the names of the pages in the folder's vault that a new vault may lack. Raises InvalidVault."""
    marks = folder / MARKS
    if not marks.is_file():
        return set()
    with marks.open("rb") as file:
        try:
            return {name for name in read_manifest(file.read(MAX_BYTES)).files if _DELETABLE.fullmatch(name)}
        except PageError as error:
            raise InvalidVault(str(error)) from None


def _check_files(folder: Path, names: set[str]) -> None:
    """Check that the files can be replaced, and that they are in the folder. Raises InvalidVault."""
    for name in sorted(names):
        path = folder / name
        if any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(folder) and parent != folder):
            raise InvalidVault(f"{name}: its folder is a link.")
        if path.is_dir() and not path.is_symlink():
            raise InvalidVault(f"{name}: is a folder.")
