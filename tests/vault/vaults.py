"""Exports and restores chats, and writes zips that no export writes."""

import io
import zipfile
from collections.abc import Mapping
from uuid import UUID

from app.chats.chat_lock import ChatRef
from app.kit.db import Database
from app.kit.ids import chat_key
from app.registry import LAYERS
from app.vault.archive import open_vault
from app.vault.export import stream_vault
from app.vault.restore import restore_vault
from tests.conftest import NOON

Files = dict[str, bytes]


def ref_of(
    tenant: str, chat_id: str = "c", *, only_user: str | None = None, of_chat: bool = False, only_chat: bool = False
) -> ChatRef:
    """A chat of a tenant, by default as an unlimited key sees it.

    With `of_chat`, it is as a token of the chat with `user_scope` sees it, and with `only_chat` as one without it.
    """
    key = chat_key(tenant, chat_id)
    return ChatRef(tenant, chat_id, key, only_user, keeps_user=of_chat or only_chat, only_chat=only_chat)


async def export(database: Database, ref: ChatRef) -> bytes:
    """The vault of a chat."""
    return b"".join([chunk async for chunk in await stream_vault(database, ref, None)])


async def restore(database: Database, vault: bytes, ref: ChatRef) -> UUID:
    """Restore a vault as this chat and return the current line."""
    async with database.unit_of_work(ref.tenant, ref.key) as db_session:
        return await restore_vault(db_session, open_vault(io.BytesIO(vault)), ref, LAYERS, now=NOON)


def files_of(vault: bytes) -> Files:
    """The files of a vault, by name."""
    with zipfile.ZipFile(io.BytesIO(vault)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zip_of(files: Mapping[str, bytes]) -> bytes:
    """A zip with these files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()
