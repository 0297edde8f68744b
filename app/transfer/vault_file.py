"""The format `vault`: a zip, or a folder, of a chat with every layer (`app/vault`)."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from app.chats.chat_lock import ChatRef
from app.kit.db import Database
from app.registry import LAYERS
from app.transfer.errors import InvalidFile
from app.vault.archive import open_vault
from app.vault.errors import InvalidVault
from app.vault.export import write_vault
from app.vault.folder import FolderVault, check_target, write_folder
from app.vault.reindex import Changes, Outcome, read_changes, reindex
from app.vault.restore import restore_vault

NAME = "vault"


async def read_vault(database: Database, ref: ChatRef, file: BinaryIO, now: datetime) -> None:
    """Make the chat `ref` from a vault, in one transaction. Raises InvalidFile, and what `restore_vault` raises."""
    with _invalid_file():
        vault = await asyncio.to_thread(open_vault, file)
        await asyncio.to_thread(vault.check)
        async with database.unit_of_work(ref.tenant, ref.key) as db_session:
            await restore_vault(db_session, vault, ref, LAYERS, now=now)


async def read_vault_folder(database: Database, ref: ChatRef, folder: Path, now: datetime) -> None:
    """Make the chat `ref` from a vault in a folder, as `read_vault` does."""
    with _invalid_file():
        async with database.unit_of_work(ref.tenant, ref.key) as db_session:
            await restore_vault(db_session, FolderVault(folder), ref, LAYERS, now=now)


async def write_vault_folder(database: Database, ref: ChatRef, folder: Path) -> None:
    """Write the vault of a chat into a folder. Raises InvalidFile, OSError, and what `write_vault` raises."""
    with _invalid_file(), tempfile.TemporaryFile() as file:
        check_target(folder)
        await write_vault(database, ref, None, file)
        await asyncio.to_thread(write_folder, file, folder)


async def reindex_vault(database: Database, ref: ChatRef, path: Path, now: datetime, *, dry_run: bool) -> Outcome:
    """Apply changes of the pages of a vault to the chat `ref`. Raises InvalidFile, OSError, ChatNotFound."""
    with _invalid_file():
        changes = await asyncio.to_thread(_read_changes, path)
        return await reindex(database, ref, changes, now=now, dry_run=dry_run)


def _read_changes(path: Path) -> Changes:
    if path.is_dir():
        return read_changes(FolderVault(path))
    with path.open("rb") as file:
        return read_changes(open_vault(file))


@contextmanager
def _invalid_file() -> Iterator[None]:
    try:
        yield
    except InvalidVault as error:
        raise InvalidFile(str(error)) from None
