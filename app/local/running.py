"""A record of the running stack, with which other commands find its servers."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from app.local.directory import DataDirectory, write_private
from app.local.errors import LocalError
from app.local.processes import Process, find_process


@dataclass(frozen=True, slots=True)
class Urls:
    """The URLs of the two servers, embedded or external. They contain passwords, so never print them."""

    database_url: str
    redis_url: str


@contextmanager
def recorded(directory: DataDirectory, urls: Urls) -> Iterator[None]:
    """Record the servers of this process for `find_running` during the block."""
    me = find_process(os.getpid())
    fields = {"process": asdict(me) if me else None, "urls": asdict(urls)}
    write_private(directory.record, json.dumps(fields))
    try:
        yield
    finally:
        directory.record.unlink(missing_ok=True)


def find_running(data: Path) -> Urls | None:
    """Return the servers of the stack that runs on the data directory `data`, or None if none runs.

    Raises LocalError if the record cannot be read.
    """
    record = DataDirectory(data).record
    try:
        fields = json.loads(record.read_text(encoding="utf-8"))
        process, urls = Process(**fields["process"]), Urls(**fields["urls"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LocalError(f"cannot read {record}: {error}") from None
    return urls if process.lives() else None
