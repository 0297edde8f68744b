"""Resolves the chat of a request and locks the row of its current line."""

import asyncio
import random
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.chats import heads, queries
from app.chats.errors import ChatNotFound
from app.chats.head import Head
from app.chats.models import ChatLine
from app.chats.revision import record_nothing, register_new, revision_of
from app.kit.auth import Caller
from app.kit.db import DbSession
from app.kit.errors import ChatBusy
from app.kit.ids import chat_key, user_key, uuid7

_LOCK_TRIES = 30
_LOCK_PAUSE_S = 0.003


@dataclass(frozen=True, slots=True)
class ChatRef:
    """A chat, with the limits of the caller who asks for it.

    Attributes:
        key: The chat's key, computed from tenant and chat_id.
        only_user: The user that the caller's token is limited to, or None. The chats of other users do not exist for
            this caller.
        keeps_user: Whether the caller must not change the chat's user. True for a token that is limited to one chat,
            because it could otherwise give the chat to another user.
        only_chat: Whether the caller sees and writes only what is known in the chat itself, and nothing of its user,
            its tenant or other chats.

    """

    tenant: str
    chat_id: str
    key: UUID
    only_user: str | None = None
    keeps_user: bool = False
    only_chat: bool = False

    @classmethod
    def of(cls, caller: Caller, chat_id: str) -> "ChatRef":
        """Return the chat `chat_id` of the caller's tenant.

        Raises ChatNotFound if the caller's token is limited to another chat.
        """
        if caller.chat_id is not None and caller.chat_id != chat_id:
            raise ChatNotFound(f"There is no chat {chat_id!r}.")
        return cls(
            caller.tenant,
            chat_id,
            chat_key(caller.tenant, chat_id),
            only_user=caller.user_id,
            keeps_user=caller.chat_id is not None,
            only_chat=caller.only_chat,
        )

    @property
    def is_limited(self) -> bool:
        """Whether the caller's token is limited to a user or a chat. It must not write what other users see."""
        return self.only_user is not None or self.keeps_user or self.only_chat

    def unknown(self) -> ChatNotFound:
        """Return the error for a chat that does not exist for this caller."""
        return ChatNotFound(f"There is no chat {self.chat_id!r}.")

    def check(self, user_id: str | None) -> None:
        """Raise ChatNotFound if the caller is limited to a user other than `user_id`, the chat's user."""
        if self.only_user is not None and user_id != self.only_user:
            raise self.unknown()


async def lock_head(db_session: DbSession, ref: ChatRef) -> Head:
    """Lock the chat's current line and return its head. Raises ChatNotFound, ChatBusy."""
    head = await _lock_current(db_session, ref.key)
    if head is None:
        raise ref.unknown()
    ref.check(head.user_id)
    return head


async def lock_lines(db_session: DbSession, chat_key: UUID) -> list[str | None]:
    """Lock all lines of a chat and return their users; empty if the chat does not exist. Raises ChatBusy.

    A transaction that adds a line to a chat holds the lock of the current line. So this function locks the current
    line first, in a separate statement, and the next statement sees all lines. The revisions of the lines do not rise,
    because only erasures call this function: they delete the rows, or change nothing.
    """
    head = await _lock_current(db_session, chat_key)
    if head is None:
        return []
    record_nothing(db_session, head.line)
    return await queries.lock_all_lines(db_session, chat_key)


async def _lock_current(db_session: DbSession, chat_key: UUID) -> Head | None:
    for misses in range(_LOCK_TRIES):
        head = await heads.lock_current(db_session, chat_key)
        if head is not None:
            return head
        # Either the chat is missing, or another line became current while the statement waited; the statement's
        # snapshot does not include that. This transaction may now hold the lock of the former line, and the transaction
        # that locked the new line may be waiting for that lock. So the locks are released before the next try.
        await _let_go(db_session, misses)
        if not await queries.has_current(db_session, chat_key):
            return None
    raise _busy()


async def lock_or_create(db_session: DbSession, ref: ChatRef, now: datetime) -> tuple[Head, bool]:
    """Lock the current line, creating the chat if it is missing; return the head and whether the chat was created.

    Raises ChatNotFound, ChatBusy.
    """
    created = False
    for misses in range(_LOCK_TRIES):
        head = await heads.lock_current(db_session, ref.key)
        if head is not None:
            ref.check(head.user_id)
            if created:
                register_new(db_session, head.line, revision_of(db_session, head.line).number - 1)
            return head, created
        # The chat is missing, or another line became current while the statement waited; the next statement sees it.
        await _let_go(db_session, misses)
        created = await queries.insert_chat(db_session, _new_chat(ref, now))
    raise _busy()


async def _let_go(db_session: DbSession, misses: int) -> None:
    """Release the locks, and after repeated misses pause for longer and longer, so that other transactions finish."""
    await db_session.restart()
    if misses:
        await asyncio.sleep(misses * random.uniform(0, _LOCK_PAUSE_S))


def _busy() -> ChatBusy:
    return ChatBusy("The chat kept switching to another line while the request waited for it; try again.")


def _new_chat(ref: ChatRef, now: datetime) -> ChatLine:
    return ChatLine(
        chat_key=ref.key,
        line_id=uuid7(),
        tenant=ref.tenant,
        chat_id=ref.chat_id,
        user_id=ref.only_user,
        user_key=user_key(ref.tenant, ref.only_user) if ref.only_user else None,
        line_created_at=now,
        created_at=now,
        last_active_at=now,
    )
