"""memobook export: write a chat to a file, or as a vault into a folder."""

import argparse
import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from app.chats.chat_lock import ChatRef
from app.commands.arguments import add_chat, add_data, find_database_url, name_chat
from app.kit.clock import system_clock
from app.kit.db import Database
from app.kit.settings import SettingsError
from app.pipeline import open_database
from app.registry import LAYERS
from app.transfer.errors import InvalidFile
from app.transfer.file_formats import FILE_FORMATS, FileFormat
from app.transfer.vault_file import NAME, write_vault_folder

_STANDARD_OUTPUT = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the chat, the format and the file."""
    parser.add_argument("chat_id", metavar="CHAT", help="id of the chat")
    add_chat(parser, FILE_FORMATS)
    to = parser.add_mutually_exclusive_group()
    to.add_argument("--output", type=Path, metavar="FILE", help="file to write (default: standard output)")
    to.add_argument("--folder", type=Path, metavar="DIR", help="folder to write the files of a vault into")
    add_data(parser)


def run(options: argparse.Namespace) -> int:
    """Write the file. A new file that cannot be completed is removed."""
    ref, form = name_chat(options.tenant, options.chat_id), FILE_FORMATS[options.format]
    if options.folder is not None and form.name != NAME:
        raise SettingsError(f"--folder: only the format {NAME} can be a folder")
    url = find_database_url(options.data)
    if options.folder is not None:
        return _write_folder(url, ref, options.folder)
    if options.output is None or _is_standard_output(options.output):
        try:
            asyncio.run(_export(url, ref, form, sys.stdout.buffer))
        except OSError as error:
            _drop_output()
            raise SettingsError(f"cannot write standard output: {error.strerror}") from None
        return 0
    try:
        _write_output(url, ref, form, options.output)
    except OSError as error:
        raise SettingsError(f"cannot write {options.output}: {error.strerror}") from None
    return 0


def _write_output(url: str, ref: ChatRef, form: FileFormat, path: Path) -> None:
    """Write a new file and replace the file at `path` by it.

    If there is something else at `path`, such as a device or a pipe, write into that instead.
    """
    replaced = _find_replaced(path)
    if replaced is None:
        with path.open("wb") as file:
            asyncio.run(_export(url, ref, form, file))
        return
    part = replaced.with_name(f".{replaced.name}.part")
    try:
        with part.open("wb") as file:
            asyncio.run(_export(url, ref, form, file))
        part.replace(replaced)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _is_standard_output(path: Path) -> bool:
    """Return whether a path leads to the file, pipe or device that standard output writes to, as `/dev/stdout` does.

    Such a file is not opened again: that would empty it, and what other commands wrote into it must stay.
    """
    try:
        return os.path.samestat(path.stat(), os.fstat(_STANDARD_OUTPUT))
    except OSError:
        return False


def _find_replaced(path: Path) -> Path | None:
    """Return the path, without links, of a file that is new or can be replaced; None for a device, pipe or folder.

    Also None for a link to an open file that has no path. `/dev/stdout` is such a link if standard output is a pipe.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return path.resolve()
    replaced = path.resolve()
    return replaced if replaced.is_file() else None


def _write_folder(url: str, ref: ChatRef, folder: Path) -> int:
    try:
        asyncio.run(_export_folder(url, ref, folder))
    except OSError as error:
        raise SettingsError(f"cannot write {folder}: {error.strerror}") from None
    except InvalidFile as error:
        raise SettingsError(f"cannot write {folder}: {error.detail}") from None
    return 0


def _drop_output() -> None:
    """Discard the buffered output. Python would otherwise write it when it ends, and fail with a traceback."""
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())


async def _export(url: str, ref: ChatRef, form: FileFormat, file: BinaryIO) -> None:
    database = _open(url)
    try:
        async for part in await form.write(database, ref, None):
            file.write(part)
        file.flush()
    finally:
        await database.close()


async def _export_folder(url: str, ref: ChatRef, folder: Path) -> None:
    database = _open(url)
    try:
        await write_vault_folder(database, ref, folder)
    finally:
        await database.close()


def _open(url: str) -> Database:
    return open_database(url, LAYERS, clock=system_clock, settle_s=0, notify=lambda: None, pool_size=2)
