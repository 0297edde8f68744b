"""The entity tag of a context, computed from the row of its statement without assembling the context."""

from collections.abc import Sequence

from app.chats.chat_lock import ChatRef
from app.chats.settings import effective_json
from app.chats.tags import tag_of
from app.context.queries import Row
from app.context.recalling import is_recalling
from app.context.schemas import ContextQuery, OwnSegment
from app.kit.scopes import ScopeRevisions

_IN_OTHER_FORM = {"line", "segments"}
"""Options that the tag contains in another form: the line's id from the row, the caller's segments as a parameter."""


def find_tag(ref: ChatRef, row: Row, options: ContextQuery, own: Sequence[OwnSegment]) -> str | None:
    """Return the tag of a context, or None if the context depends on more than the chat, its scopes and the request.

    The result is None if the request has a draft or a time, if recall is on, or if the context contains the segment
    `time`.
    """
    settings = effective_json(row["settings"])
    if is_recalling(options, settings) or settings.time or options.draft is not None or options.now is not None:
        return None
    scopes = ScopeRevisions(row["of_user"] or 0, row["of_tenant"] or 0)
    given = options.model_dump(exclude=_IN_OTHER_FORM)
    segments = [segment.model_dump() for segment in own]
    kind = "context of the chat itself" if ref.only_chat else "context"
    return tag_of(ref.key, row["line_id"], row["revision"], scopes, kind, given, segments)
