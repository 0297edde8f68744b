"""The data directory and what lies in it.

DATA/lock                 held by the one process that uses DATA
DATA/postgres/            PostgreSQL's own files
DATA/postgres.password    its superuser's password
DATA/memobook.password    the service's password
DATA/logs/                what PostgreSQL and Valkey say
DATA/run/                 pid files, and how to reach what runs; nothing in it outlives a run
"""

import os
import secrets
from pathlib import Path


class DataDirectory:
    """Paths below DATA.

    Args:
        path: Absolute or relative; symbolic links in it are followed once, here.

    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.lock = self.path / "lock"
        self.postgres = self.path / "postgres"
        self.logs = self.path / "logs"
        self.run = self.path / "run"
        self.record = self.run / "stack.json"

    def make(self) -> None:
        """Make what is missing; directories that are there keep their owner and mode.

        Root's PostgreSQL runs as another user, who passes through DATA but reads nothing there.
        """
        if not self.path.exists():
            self.path.mkdir(parents=True)
            self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        for path in (self.logs, self.run):
            path.mkdir(mode=0o700, exist_ok=True)

    def password(self, name: str) -> str:
        """The random password in `DATA/<name>.password`, made at the first call; 64 hexadecimal digits."""
        path = self.path / f"{name}.password"
        if not path.exists():
            write_private(path, secrets.token_hex(32))
        return path.read_text(encoding="ascii").strip()


def write_private(path: Path, text: str) -> None:
    """Write `text` to a file that only this user reads: whole or not at all, also when the power fails."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
