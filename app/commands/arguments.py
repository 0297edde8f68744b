"""Arguments that several commands take."""

import argparse
from pathlib import Path

from app.kit.settings import SettingsError, load_settings
from app.local.running import find_running


def add_data(parser: argparse.ArgumentParser) -> None:
    """--data DIR."""
    parser.add_argument(
        "--data", type=Path, default=Path(".data"), metavar="DIR", help="where the embedded servers keep their data"
    )


def add_address(parser: argparse.ArgumentParser) -> None:
    """--host and --port."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: %(default)s)")


def find_database_url(data: Path) -> str:
    """The configured database's URL, else the embedded one's of an `up` that is running. Raises SettingsError."""
    settings = load_settings()
    if settings.database_url is not None:
        return settings.sqlalchemy_url
    running = find_running(data)
    if running is None:
        raise SettingsError(f"MEMOBOOK_DATABASE_URL is not set, and no memobook up is running on {data}")
    return running.database_url


def say(line: str) -> None:
    """Tell a person one line, at once."""
    print(line, flush=True)
