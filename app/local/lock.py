"""A lock that allows one process per data directory.

The kernel releases the lock when the process ends, so a killed process leaves no stale lock. The pid in the file is
only used for the error message.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.local.errors import LocalError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on the file `path` during the block. The file is created if missing and is not removed.

    Raises LocalError if another process holds the lock.
    """
    # Not inherited: otherwise a child that outlives this process would keep the lock.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "(unknown)"
            raise LocalError(f"the data directory {path.parent} is in use by process {holder}") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
