"""memobook healthcheck: check whether one worker still reports to the database.

It imports neither the layers nor FastAPI, because a container runs it every 30 seconds.
"""

import argparse
import asyncio
from pathlib import Path
from uuid import UUID

from app.commands.database import naming_database
from app.kit.db import Database
from app.kit.settings import load_settings
from app.kit.workers import SILENT_S, has_reported
from app.local.errors import LocalError

STATEMENT_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file that names the worker."""
    parser.add_argument("file", type=Path, metavar="FILE", help="file that memobook worker --record FILE has written")


def run(options: argparse.Namespace) -> int:
    """Return 0 if the worker has reported within `SILENT_S`. Raises LocalError if it has not."""
    try:
        worker_id = UUID(options.file.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        raise LocalError(f"{options.file} does not contain the id of a worker") from None
    with naming_database():
        reported = asyncio.run(_ask(worker_id))
    if reported is None:
        raise LocalError("The worker has not reported yet, has ended, or has been silent for a day.")
    if not reported:
        raise LocalError(f"The worker has not reported for {SILENT_S:.0f} seconds.")
    return 0


async def _ask(worker_id: UUID) -> bool | None:
    database = Database(load_settings().sqlalchemy_url, pool_size=1, statement_s=STATEMENT_S)
    try:
        async with database.raw() as connection:
            return await has_reported(connection, worker_id)
    finally:
        await database.close()
