"""Arguments and helpers that several commands share."""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from app.chats.chat_lock import ChatRef
from app.kit.auth import DEFAULT_TENANT, Caller
from app.kit.settings import SettingsError, load_settings
from app.kit.validation_errors import CHAT_ID_PATTERN
from app.local.running import find_running


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the option `--data DIR`."""
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(".data"),
        metavar="DIR",
        help="data directory of the embedded servers (default: %(default)s)",
    )


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the options `--host` and `--port`."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: %(default)s)")


def add_chat(parser: argparse.ArgumentParser, formats: Iterable[str]) -> None:
    """Add the options `--format` and `--tenant`, for a file of a chat."""
    parser.add_argument("--format", required=True, choices=list(formats), help="format of the file")
    add_tenant(parser)


def add_tenant(parser: argparse.ArgumentParser) -> None:
    """Add the option `--tenant`."""
    parser.add_argument("--tenant", default=DEFAULT_TENANT, help="tenant of the chat (default: %(default)s)")


def name_chat(tenant: str, chat_id: str) -> ChatRef:
    """Return the chat of a tenant. Raises SettingsError for an id that no chat can have."""
    if not re.fullmatch(CHAT_ID_PATTERN, chat_id):
        raise SettingsError(
            f"{chat_id!r} is not a chat id; use 1 to 200 characters of A-Z a-z 0-9 . _ : @ -; not just . or .."
        )
    return ChatRef.of(Caller(tenant, frozenset()), chat_id)


def find_database_url(data: Path) -> str:
    """Return the URL of the configured database, or of the embedded one if `memobook up` is running on `data`.

    Raises SettingsError if neither is available.
    """
    settings = load_settings()
    if settings.database_url is not None:
        return settings.sqlalchemy_url
    running = find_running(data)
    if running is None:
        raise SettingsError(f"MEMOBOOK_DATABASE_URL is not set, and no memobook up is running on {data}")
    return running.database_url


def say(line: str) -> None:
    """Print a line and flush it."""
    print(line, flush=True)
