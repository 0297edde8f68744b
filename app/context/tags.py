"""The entity tag of a context, by the row of its statement: nothing has to be assembled for it."""

from collections.abc import Sequence

import asyncpg

from app.chats.service import ChatRef
from app.chats.settings import effective_json
from app.chats.tags import tag_of
from app.context.schemas import ContextQuery, OwnSegment
from app.kit.scopes import ScopeRevisions

_ELSEWHERE = {"line", "segments"}
"""Options that are not compared as given: the row names the line, and the caller's segments are passed in."""


def find_tag(ref: ChatRef, row: asyncpg.Record, options: ContextQuery, own: Sequence[OwnSegment]) -> str | None:
    """Return the tag of a context, or None if it depends on more than the chat, its scopes and the request.

    That is so with a draft, with recall, and where the context tells the time.
    """
    settings = effective_json(row["settings"])
    recalls = (options.recall or settings.recall.mode) == "auto"
    if recalls or settings.time or options.draft is not None or options.now is not None:
        return None
    scopes = ScopeRevisions(row["of_user"] or 0, row["of_tenant"] or 0)
    given = options.model_dump(exclude=_ELSEWHERE)
    segments = [segment.model_dump() for segment in own]
    return tag_of(ref.key, row["line_id"], row["revision"], scopes, "context", given, segments)
