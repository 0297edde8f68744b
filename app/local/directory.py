"""The data directory and its contents.

DATA/lock                 locked by the process that uses DATA
DATA/postgres/            PostgreSQL's data directory
DATA/postgres.password    the password of PostgreSQL's superuser
DATA/memobook.password    the password of the service's role
DATA/logs/                the logs of PostgreSQL and Valkey
DATA/run/                 pid files and the URLs of the running servers; only valid during a run
"""

import os
import secrets
from pathlib import Path


class DataDirectory:
    """The paths in a data directory.

    Args:
        path: Absolute or relative; symbolic links are resolved once, here.

    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.lock = self.path / "lock"
        self.postgres = self.path / "postgres"
        self.logs = self.path / "logs"
        self.run = self.path / "run"
        self.record = self.run / "stack.json"

    def make(self) -> None:
        """Create missing directories. Existing ones keep their owner and mode.

        If root creates DATA, other users can traverse it but not list it, because PostgreSQL runs as another user.
        """
        if not self.path.exists():
            self.path.mkdir(parents=True)
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        for path in (self.logs, self.run):
            path.mkdir(mode=0o700, exist_ok=True)

    def password(self, name: str) -> str:
        """Return the password in `DATA/<name>.password`; the first call creates it: 64 random hexadecimal digits."""
        path = self.path / f"{name}.password"
        if not path.exists():
            write_private(path, secrets.token_hex(32))
        return path.read_text(encoding="ascii").strip()


def write_private(path: Path, text: str) -> None:
    """Write `text` atomically to a file that only this user can read; the content is synced to disk first."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
