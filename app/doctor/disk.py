"""The check of the disk: its free space if the database is embedded, otherwise only the size of the database."""

import shutil
from pathlib import Path
from typing import Final

from app.doctor.finding import Finding
from app.kit.db import Connection

MIN_FREE_BYTES: Final = 512 * 1024 * 1024
"""A server with less free space may fail at its next write-ahead log segments."""

_GIB: Final = 1 << 30


async def check_disk(connection: Connection, data: Path | None) -> Finding:
    """Check the free space of the disk with the data directory `data`, which is None for a server elsewhere."""
    size: int = await connection.fetchval("SELECT pg_database_size(current_database())")
    if data is None:
        message = f"The database takes {size / _GIB:.1f} GiB. The free space of its server is not visible from here."
        return Finding("disk", "ok", message)
    usage = shutil.disk_usage(data)
    return judge_space(free_bytes=usage.free, total_bytes=usage.total, size_bytes=size)


def judge_space(*, free_bytes: int, total_bytes: int, size_bytes: int) -> Finding:
    """Return the finding for a disk of these sizes."""
    message = (
        f"{free_bytes / _GIB:.1f} GiB of {total_bytes / _GIB:.1f} GiB are free; the database takes"
        f" {size_bytes / _GIB:.1f} GiB."
    )
    if free_bytes < MIN_FREE_BYTES:
        return Finding("disk", "fault", message, "Free space on the disk of the data directory, or move it to another.")
    return Finding("disk", "ok", message)
