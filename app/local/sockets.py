"""The directory of the Unix sockets, one for each run, with a short path.

The path of a socket is limited to about 100 bytes (`sockaddr_un`), and the path of the data directory may be longer. So
the sockets are in a directory below the system's directory for temporary files. A file in the data directory records
the path of the socket directory, so that the next run can remove it if this run is killed.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.local.account import Account
from app.local.directory import write_private

_PREFIX = "memobook-"
_MAX_BASE_BYTES = 64
"""Leaves room for `/memobook-xxxxxxxx/.s.PGSQL.5432.lock` within the limit of macOS, 104 bytes."""


def socket_base() -> Path:
    """Return the directory for temporary files in which socket directories are created.

    Returns `/tmp` instead if the path is too long or would need quoting in a URL or a server setting.
    """
    base = Path(tempfile.gettempdir()).resolve()
    plain = re.fullmatch(r"[A-Za-z0-9_./-]+", str(base))
    return base if plain and len(os.fsencode(base)) <= _MAX_BASE_BYTES else Path("/tmp").resolve()


@contextmanager
def socket_directory(record: Path, account: Account) -> Iterator[Path]:
    """Create a directory of mode 0700, owned by `account`, for the duration of the block.

    During the block, the file `record` contains the path of the directory. If the file already contains a path, the
    directory at that path is removed first.
    """
    if record.exists():
        _remove(Path(record.read_text(encoding="utf-8")), owners={os.geteuid(), account.uid})
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=socket_base()))
    try:
        write_private(record, str(path))
        account.take(path)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        record.unlink(missing_ok=True)


def _remove(path: Path, owners: set[int]) -> None:
    """Remove the directory of a killed run, if `path` is a socket directory that one of `owners` owns."""
    ours = path.name.startswith(_PREFIX) and path.is_dir() and not path.is_symlink()
    if ours and path.stat().st_uid in owners:
        shutil.rmtree(path, ignore_errors=True)
