"""Entity tags of what is read of a chat: they change with its revision and with the scopes that it is in."""

from typing import Any
from uuid import UUID

from app.chats.access import ChatRef
from app.chats.models import ChatLine
from app.kit.db import DbSession
from app.kit.etags import make_tag
from app.kit.scopes import ScopeRevisions, read_scopes


def tag_of(chat_key: UUID, line_id: UUID, revision: int, scopes: ScopeRevisions, *request: Any) -> str:
    """Return the tag of an answer about a line; `request` is what was asked for, in one form for equal requests."""
    return make_tag(chat_key, line_id, revision, scopes.of_user, scopes.of_tenant, *request)


async def read_tag(db_session: DbSession, ref: ChatRef, chat: ChatLine, *request: Any) -> str:
    """Return the tag of an answer about a line.

    Read it before the rest of the answer: of a change in between the answer may then have more than its tag says, and
    the next request finds a new tag. The other way round it would find the former answer for good.
    """
    scopes = await read_scopes(db_session.raw, ref.tenant, chat.user_key)
    return tag_of(ref.key, chat.line_id, chat.revision, scopes, *request)
