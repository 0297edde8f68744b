"""memobook import: make a chat from a file, or from a vault in a folder."""

import argparse
import asyncio
import os
from pathlib import Path

from app.chats.chat_lock import ChatRef
from app.commands.arguments import add_chat, add_data, find_database_url, name_chat, say
from app.embeddings.configured import is_configured
from app.kit.clock import system_clock
from app.kit.settings import PREFIX, SettingsError, load_settings
from app.pipeline import open_database
from app.registry import LAYERS
from app.transfer.file_formats import FILE_FORMATS, FileFormat
from app.transfer.vault_file import NAME, read_vault_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file, its format and the new chat."""
    parser.add_argument("file", type=Path, metavar="FILE", help="file to read, or the folder of a vault")
    add_chat(parser, FILE_FORMATS)
    parser.add_argument("--chat-id", required=True, metavar="CHAT", help="id of the new chat")
    add_data(parser)


def run(options: argparse.Namespace) -> int:
    """Make the chat, as a whole or not at all."""
    ref, form = name_chat(options.tenant, options.chat_id), FILE_FORMATS[options.format]
    url = find_database_url(options.data)
    is_folder = options.file.is_dir()
    if is_folder and form.name != NAME:
        raise SettingsError(f"cannot read {options.file}: only the format {NAME} can be a folder")
    try:
        asyncio.run(_import(url, ref, form, options.file, is_folder=is_folder))
    except OSError as error:
        problem = error.strerror or "must be a file, not a pipe"  # a seek in a pipe fails without a `strerror`
        raise SettingsError(f"cannot read {options.file}: {problem}") from None
    say(f"imported {options.file} as the chat {options.chat_id}")
    return 0


async def _import(url: str, ref: ChatRef, form: FileFormat, path: Path, *, is_folder: bool) -> None:
    """Make the chat. No worker is notified: workers poll for due work.

    A file has the limit of `POST /v1/import`, a folder that of what a zip contains (`FolderVault`). Raises
    SettingsError for a larger file.
    """
    settings = load_settings()
    database = open_database(
        url,
        LAYERS,
        clock=system_clock,
        settle_s=settings.settle_s,
        notify=lambda: None,
        pool_size=2,
        with_vectors=is_configured(settings),
    )
    try:
        if is_folder:
            await read_vault_folder(database, ref, path, system_clock())
            return
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) > settings.max_import_bytes:
                limit = f"{settings.max_import_bytes} bytes ({PREFIX}MAX_IMPORT_BYTES)"
                raise SettingsError(f"cannot read {path}: the file must have at most {limit}")
            await form.read(database, ref, file, system_clock())
    finally:
        await database.close()
