"""Entity tags of responses about a chat: they change with the revisions of its line, its user and its tenant."""

from typing import Any
from uuid import UUID

from app.chats.chat_lock import ChatRef
from app.chats.models import ChatLine
from app.kit.db import DbSession
from app.kit.etags import make_tag
from app.kit.scopes import ScopeRevisions, read_scopes


def tag_of(chat_key: UUID, line_id: UUID, revision: int, scopes: ScopeRevisions, *request: Any) -> str:
    """Return the tag of a response about a line; `request` are values that identify the request."""
    return make_tag(chat_key, line_id, revision, scopes.of_user, scopes.of_tenant, *request)


async def read_tag(db_session: DbSession, ref: ChatRef, chat: ChatLine, *request: Any) -> str:
    """Return the tag of a response about a line.

    Read the tag before the rest of the response. If a change is committed in between, the response is newer than its
    tag, and the next request gets a new tag. In the other order, an old response could get the new tag, and the client
    would keep it for good.
    """
    scopes = await read_scopes(db_session.raw, ref.tenant, chat.user_key)
    return tag_of(ref.key, chat.line_id, chat.revision, scopes, *request)
