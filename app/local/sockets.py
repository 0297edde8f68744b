"""Where the sockets are: a directory of this run alone, with a short path.

A socket's path holds about 100 bytes (`sockaddr_un`) and DATA may be longer, so they lie in the system's
directory for temporary files. DATA keeps a record of it, for the run after one that was killed.
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
"""Leaves room for `/memobook-xxxxxxxx/.s.PGSQL.5432.lock` in the 104 bytes that macOS has."""


def socket_base() -> Path:
    """The directory in which socket directories are made.

    A path that is long, or that a URL or a server's setting would have to quote, is passed over for `/tmp`.
    """
    base = Path(tempfile.gettempdir()).resolve()
    plain = re.fullmatch(r"[A-Za-z0-9_./-]+", str(base))
    return base if plain and len(os.fsencode(base)) <= _MAX_BASE_BYTES else Path("/tmp").resolve()


@contextmanager
def socket_directory(record: Path, account: Account) -> Iterator[Path]:
    """A new directory of mode 0700 that `account` owns, removed afterwards; `record` names it meanwhile."""
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
    """Remove a killed run's directory, unless the name is by now somebody else's."""
    ours = path.name.startswith(_PREFIX) and path.is_dir() and not path.is_symlink()
    if ours and path.stat().st_uid in owners:
        shutil.rmtree(path, ignore_errors=True)
