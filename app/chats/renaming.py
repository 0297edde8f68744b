"""Renames a character on the current line, in the list of characters and in its messages.

The handlers of the event `CharacterRenamed` rename it in everything else that stores its name.
"""

from datetime import datetime

from app.chats import queries
from app.chats.character_list import find_character, rename_character
from app.chats.chat_lock import ChatRef, lock_head
from app.chats.errors import ChatNotFound
from app.chats.events import CharacterRenamed
from app.chats.heads import lock_line
from app.chats.models import ChatLine
from app.chats.revision import record_nothing
from app.chats.service import get_chat
from app.kit.db import DbSession, defer
from app.kit.scopes import raise_scope_of


async def rename(db_session: DbSession, ref: ChatRef, former: str, name: str, *, now: datetime) -> ChatLine:
    """Rename a character and return the chat; `former` may also be a former name of the character.

    Other lines do not change. Raises ChatNotFound, CharacterNotFound, CharacterTaken.
    """
    head = await lock_head(db_session, ref)
    chat = await get_chat(db_session, ref)
    former = find_character(chat.characters, former)["name"]
    renamed = rename_character(chat.characters, former, name)
    if name == former:
        record_nothing(db_session, head.line)
        return chat
    await queries.update_line(db_session, head.line, {"characters": renamed})
    await queries.rename_speaker(db_session, head.line, former, name)
    changed = await lock_line(db_session, *head.line)  # its filters and characters have the new name
    if changed is None:
        raise ChatNotFound(f"There is no chat {ref.chat_id!r}.")
    event = CharacterRenamed(head=changed, now=now, settle_s=db_session.settle_s, former=former, name=name)
    defer(db_session, event)
    if chat.user_key is not None:  # the user's other chats can know the character by the new name
        raise_scope_of(db_session, chat.user_key, is_tenant=False)
    await db_session.refresh(chat)
    return chat
