"""Stores what the tools of characters say: in which scope, and bound to which reply."""

from datetime import datetime

from app.bindings import service as bindings
from app.bindings.service import Call
from app.chats.chat_lock import ChatRef
from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.service import get_chat
from app.chats.settings import effective
from app.kit.db import DbSession, defer
from app.knowledge.known import SCOPES, Known
from app.knowledge.reading import Viewpoint
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Said, teach
from app.knowledge.settings import LearningSettings


async def choose_scope(db_session: DbSession, ref: ChatRef, view: Viewpoint, deciding: Known | None) -> ScopeKey:
    """Return the scope of what a tool says: `learn_scope`, but none wider than that of `deciding`.

    `deciding` is the statement that decides about the key now; in a wider scope, a new value would not hold.
    """
    chat = await get_chat(db_session, ref)
    learnt = LearningSettings.of(effective(chat.settings)).learn_scope
    rank = min(SCOPES.index(learnt), deciding.rank if deciding else len(SCOPES))
    return ScopeKey.of_name(
        SCOPES[rank], tenant=ref.tenant, chat_key=ref.key, user_id=chat.user_id, character=view.character
    )


async def learn(
    db_session: DbSession,
    head: Head,
    scope: ScopeKey,
    call: Call,
    said: Said,
    *,
    now: datetime,
    bounded: bool = True,
) -> None:
    """Bind what a tool says to the reply that the call belongs to, and store it. Does nothing for a retry.

    `head` is that of the chat's current line, locked. Raises TooManyKeys, unless the keys of the kind are not
    `bounded`, and Invalid for a target that cannot be a reply.
    """
    made = await bindings.bind(db_session, head, call, now=now)
    if made.is_retry:
        return
    await teach(db_session, head, scope, made, said, layer=call.layer, now=now, bounded=bounded)
    defer(db_session, LayerChanged(head, call.layer))
