"""Opens an untrusted zip and refuses harmful content: some when the zip is opened, the rest while its files are read.

`zipfile` loads the whole directory of a zip into memory, so the size of the directory is checked first. Entries are
never extracted to disk. They are only read, up to the size that the directory states.
"""

import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedReader, RawIOBase
from typing import IO, Protocol, cast

from app.vault.errors import InvalidVault
from app.vault.state_file import MAX_LINE_BYTES, Row, StateError, read_rows

STATE = "state.json"

MAX_ENTRIES = 10_000
MAX_DIRECTORY_BYTES = 4 * 1024 * 1024
MAX_BYTES = 1024 * 1024 * 1024
"""The maximum total size of all files after decompression."""

MAX_RATIO, RATIO_FROM_BYTES = 200, 256 * 1024 * 1024
"""The decompressed files may be at most 200 times as large as the zip; up to 256 MiB in all, any ratio is allowed."""

_END = struct.Struct("<4s4H2LH")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UTF8 = 0x800
_READ_BYTES = 256 * 1024

_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, OverflowError, RuntimeError, ValueError)
"""What `zipfile` raises for a zip that is damaged, was made to harm, or needs something that it does not support.

RuntimeError includes NotImplementedError; ValueError includes UnicodeDecodeError.
"""


class VaultFiles(Protocol):
    """The files of a vault, in a zip or in a folder."""

    def list_names(self) -> list[str]:
        """Return the names of the files, sorted. Files in subfolders may be left out."""
        ...

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file, each with its line break. Raises InvalidVault.

        A line that is longer than MAX_LINE_BYTES is yielded in parts, so that the memory is bounded.
        """
        ...


class Vault:
    """An open zip whose entries were checked. It can be read while the file that it was opened from is open."""

    def __init__(self, archive: zipfile.ZipFile, folder: str) -> None:
        self._archive = archive
        self._folder = folder

    def list_names(self) -> list[str]:
        """Return the names of the files, sorted.

        If `state.json` is in a folder of the zip, these are the files in this folder, with their paths inside it.
        """
        names = (name.removeprefix(self._folder) for name in self._archive.namelist() if name.startswith(self._folder))
        return sorted(name for name in names if not name.endswith("/"))

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a file, each with its line break, in bounded memory. Raises InvalidVault."""
        return self._read_entry(self._folder + name)

    def check(self) -> None:
        """Read all entries of the zip, so that `zipfile` compares their checksums. Raises InvalidVault.

        If the vault is in a folder of the zip, the entries outside of this folder are read, too.
        """
        for name in self._archive.namelist():
            for _ in self._read_entry(name):
                pass

    def _read_entry(self, name: str) -> Iterator[bytes]:
        """Yield the lines of an entry, whose name begins with the folder if the vault has one."""
        try:
            with self._archive.open(name) as entry:
                # A zip entry has the methods of a raw stream.
                buffered = BufferedReader(cast("RawIOBase", entry), _READ_BYTES)
                while line := buffered.readline(MAX_LINE_BYTES):
                    yield line
        except KeyError:
            raise InvalidVault(f"The vault has no file {name!r}.") from None
        except _ZIP_ERRORS as error:
            raise InvalidVault(f"{name}: the file in the zip is damaged ({type(error).__name__}).") from None


def read_state(vault: VaultFiles) -> Iterator[Row]:
    """Yield the rows of `state.json`. Raises InvalidVault."""
    try:
        yield from read_rows(vault.read_lines(STATE))
    except StateError as error:
        raise InvalidVault(f"{STATE}: {error}.") from None


def read_file(vault: VaultFiles, name: str, max_bytes: int) -> bytes:
    """Return the content of a file. Raises InvalidVault if it is larger than `max_bytes`."""
    content = bytearray()
    for line in vault.read_lines(name):
        content += line
        if len(content) > max_bytes:
            raise InvalidVault(f"{name}: is larger than {max_bytes:,} bytes.")
    return bytes(content)


def open_vault(file: IO[bytes]) -> Vault:
    """Return the vault in a seekable file. Raises InvalidVault if it is not a zip with harmless entries and a state.

    Only the directory is read. The rows of the state (`state.json`) are checked when they are read.
    """
    size = file.seek(0, 2)
    _check_end(file, size)
    file.seek(0)
    try:
        archive = zipfile.ZipFile(file)
    except _ZIP_ERRORS as error:
        raise InvalidVault(f"The zip is damaged: its directory cannot be read ({type(error).__name__}).") from None
    infos = archive.infolist()
    for info in infos:
        _check_entry(info)
    _check_names(infos)
    _check_sizes(infos, size)
    names = [info.filename for info in infos]
    if STATE in names:
        return Vault(archive, "")
    folders = [name.removesuffix(STATE) for name in names if name.count("/") == 1 and name.endswith(f"/{STATE}")]
    if len(folders) != 1:
        raise InvalidVault(f"The zip is not a vault: it has no file {STATE!r}.")
    return Vault(archive, folders[0])


def _check_end(file: IO[bytes], size: int) -> None:
    """Check the record at the end of the zip. Raises InvalidVault.

    The record must be the last 22 bytes of the file, because `zipfile` could otherwise use another record.
    """
    file.seek(max(size - _END.size - 20, 0))
    tail = file.read(_END.size + 20)
    if len(tail) < _END.size or not tail[-_END.size :].startswith(b"PK\5\6"):
        raise InvalidVault("The file is not a whole zip: it is cut off, or something else.")
    _, disk, first_disk, here, entries, directory_bytes, begins, comment = _END.unpack(tail[-_END.size :])
    if comment or disk or first_disk or here != entries or b"PK\6\7" in tail[:20]:
        raise InvalidVault(f"The zip must be one file without a comment and with at most {MAX_ENTRIES:,} entries.")
    if begins + directory_bytes + _END.size != size:
        raise InvalidVault("The zip is damaged: something is missing in it, or before it.")
    if entries > MAX_ENTRIES or directory_bytes > MAX_DIRECTORY_BYTES:
        raise InvalidVault(
            f"The zip has too many entries or too long names. It may have {MAX_ENTRIES:,} entries, and a directory of "
            "4 MiB."
        )


def _check_entry(info: zipfile.ZipInfo) -> None:
    name = info.orig_filename
    shown = repr(name[:100])
    if info.flag_bits & _ENCRYPTED:
        raise InvalidVault(f"{shown} is encrypted; a vault has no password.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InvalidVault(f"{shown} has an unknown compression; use deflate or none.")
    if not name.isascii() and not info.flag_bits & _UTF8:
        raise InvalidVault(f"The name {shown} is not in UTF-8.")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise InvalidVault(f"{shown} is a link or a special file; a vault has only files.")
    parts = name.removesuffix("/").split("/")
    is_safe = not any(part in ("", ".", "..") for part in parts) and not set(name) & set("\\:\0")
    if not is_safe or not name.isprintable():
        raise InvalidVault(f"{shown} is not a relative path inside the vault.")


def _check_names(infos: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse two names that some file systems take for the same, such as `A.md` and `a.md`."""
    seen = set[str]()
    for info in infos:
        name = unicodedata.normalize("NFC", info.filename.removesuffix("/")).casefold()
        if name in seen:
            raise InvalidVault(f"The zip contains {info.filename[:100]!r} twice.")
        seen.add(name)


def _check_sizes(infos: Sequence[zipfile.ZipInfo], size: int) -> None:
    end = size
    for info in sorted(infos, key=lambda info: info.header_offset, reverse=True):
        if info.header_offset + info.compress_size > end:
            raise InvalidVault("The zip is damaged: its entries overlap.")
        end = info.header_offset
    total = sum(info.file_size for info in infos)
    if total > MAX_BYTES:
        raise InvalidVault(f"The files of the zip have {total:,} bytes; at most {MAX_BYTES:,} are read.")
    if total > max(RATIO_FROM_BYTES, size * MAX_RATIO):
        raise InvalidVault(f"The zip is compressed more than {MAX_RATIO} times.")
