"""The format `vault`: a zip of a chat with every layer (`app/vault`)."""

import asyncio
from datetime import datetime
from typing import BinaryIO

from app.chats.chat_lock import ChatRef
from app.kit.db import Database
from app.registry import LAYERS
from app.transfer.errors import InvalidFile
from app.vault.archive import open_vault
from app.vault.errors import InvalidVault
from app.vault.restore import restore_vault

NAME = "vault"


async def read_vault(database: Database, ref: ChatRef, file: BinaryIO, now: datetime) -> None:
    """Make the chat `ref` from a vault, in one transaction. Raises InvalidFile, and what `restore_vault` raises."""
    try:
        vault = await asyncio.to_thread(open_vault, file)
        await asyncio.to_thread(vault.check)
        async with database.unit_of_work(ref.tenant, ref.key) as db_session:
            await restore_vault(db_session, vault, ref, LAYERS, now=now)
    except InvalidVault as error:
        raise InvalidFile(str(error)) from None
