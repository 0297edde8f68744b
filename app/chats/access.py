"""Which chat is meant, and its row, locked: what every verb of the log begins with."""

import asyncio
import random
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.chats import queries
from app.chats.errors import ChatBusy, ChatNotFound
from app.chats.head import Head
from app.chats.models import ChatLine
from app.chats.revision import record_nothing, register_new, revision_of
from app.kit.auth import Caller
from app.kit.db import DbSession
from app.kit.ids import chat_key, user_key, uuid7

_LOCK_TRIES = 30
_LOCK_PAUSE_S = 0.003


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat as a caller may see it.

    Attributes:
        key: Computed from tenant and chat_id.
        only_user: A token's limit to one user: another's chat does not exist for it.
        keeps_user: Whether the caller may not say whose chat it is: a token that is limited to one chat could
            hand it to another user.

    """

    tenant: str
    chat_id: str
    key: UUID
    only_user: str | None = None
    keeps_user: bool = False

    @classmethod
    def of(cls, caller: Caller, chat_id: str) -> "ChatRef":
        """The chat `chat_id` of the caller's tenant. Raises ChatNotFound outside a token's limit."""
        if caller.chat_id is not None and caller.chat_id != chat_id:
            raise ChatNotFound(f"There is no chat {chat_id!r}.")
        return cls(
            caller.tenant,
            chat_id,
            chat_key(caller.tenant, chat_id),
            only_user=caller.user_id,
            keeps_user=caller.chat_id is not None,
        )

    def unknown(self) -> ChatNotFound:
        """The error for a chat that does not exist for this caller."""
        return ChatNotFound(f"There is no chat {self.chat_id!r}.")

    def check(self, user_id: str | None) -> None:
        """Raises ChatNotFound if the chat's user is not the one the caller is limited to."""
        if self.only_user is not None and user_id != self.only_user:
            raise self.unknown()


async def lock_head(db_session: DbSession, ref: ChatRef) -> Head:
    """Lock the chat's current line and read its head. Raises ChatNotFound, ChatBusy."""
    locked = await _lock_current(db_session, ref.key)
    if locked is None:
        raise ref.unknown()
    head, user_id = locked
    ref.check(user_id)
    return head


async def lock_lines(db_session: DbSession, chat_key: UUID) -> list[str | None]:
    """Lock every line of a chat and return their users; none for a chat that is not there. Raises ChatBusy.

    Whoever makes a line has locked the current one. So that comes first, in a statement of its own, and the next one
    sees all lines there are. For an erasure: a row that is deleted needs no revision, so none rises.
    """
    locked = await _lock_current(db_session, chat_key)
    if locked is None:
        return []
    record_nothing(db_session, locked[0].line)
    return await queries.lock_all_lines(db_session, chat_key)


async def _lock_current(db_session: DbSession, chat_key: UUID) -> tuple[Head, str | None] | None:
    for misses in range(_LOCK_TRIES):
        locked = await queries.lock_current(db_session, chat_key)
        if locked is not None:
            return locked
        # Missing, or switched to another line while this statement waited: that one it did not see. But it has locked
        # the one that it waited for, which somebody who holds the other may want.
        await _let_go(db_session, misses)
        if not await queries.has_current(db_session, chat_key):
            return None
    raise _busy()


async def lock_or_create(db_session: DbSession, ref: ChatRef, now: datetime) -> tuple[Head, bool]:
    """Lock the current line, creating the chat if it is missing; says whether it was created."""
    created = False
    for misses in range(_LOCK_TRIES):
        locked = await queries.lock_current(db_session, ref.key)
        if locked is not None:
            head, user_id = locked
            ref.check(user_id)
            if created:
                register_new(db_session, head.line, revision_of(db_session, head.line).number - 1)
            return head, created
        # Missing, or switched to another line while this statement waited: the next one sees which.
        await _let_go(db_session, misses)
        created = await queries.insert_chat(db_session, _new_chat(ref, now))
    raise _busy()


async def _let_go(db_session: DbSession, misses: int) -> None:
    """Give the locks back; the more often that was in vain, the longer others have the chat to themselves."""
    await db_session.restart()
    if misses:
        await asyncio.sleep(misses * random.uniform(0, _LOCK_PAUSE_S))


def _busy() -> ChatBusy:
    return ChatBusy("The chat was switched to another line again and again; try again.")


def _new_chat(ref: ChatRef, now: datetime) -> ChatLine:
    return ChatLine(
        chat_key=ref.key,
        line_id=uuid7(),
        tenant=ref.tenant,
        chat_id=ref.chat_id,
        user_id=ref.only_user,
        user_key=user_key(ref.tenant, ref.only_user) if ref.only_user else None,
        line_made_at=now,
        created_at=now,
        last_active_at=now,
    )
