"""One process per data directory.

The kernel holds the lock for as long as the process lives, so a killed one leaves none behind;
the pid in the file is only for the message.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.local.errors import LocalError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on the file `path`, which is made if missing and stays.

    Raises LocalError if another holder lives.
    """
    # Not inherited: a child that outlived this process would otherwise keep the lock.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read().strip() or "another one"
            raise LocalError(f"the data directory {path.parent} is in use by process {holder}") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
