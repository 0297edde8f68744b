"""The inclusion report: how the default context (that of a request without options) includes each message.

It is computed from the same data as the context, before `max_tokens` trims anything.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from app.chats.chat_lock import ChatRef
from app.chats.coverage import Coverage
from app.chats.heads import filters_of
from app.chats.models import ChatLine
from app.chats.service import get_line
from app.chats.settings import ChatSettings, effective
from app.context.formats import is_said
from app.context.in_use import in_use
from app.context.inclusion import Shown, find_status
from app.context.pinned import choose_pinned
from app.context.queries import find_context, read_material
from app.context.wording import style_of
from app.kit.db import DbSession
from app.knowledge.narrowing import list_own_ids
from app.layers.layer import Layer
from app.messages.reads import list_messages


async def list_inclusion(
    db_session: DbSession, ref: ChatRef, layers: Sequence[Layer], *, line: UUID | None, after_seq: int, limit: int
) -> list[dict[str, Any]]:
    """Return how the default context of a line includes each message after a seq. Raises ChatNotFound, LineNotFound."""
    chat = await get_line(db_session, ref, line)
    messages = await list_messages(
        db_session, ref.key, chat.line_id, after_seq=after_seq, before_seq=None, limit=limit, newest=False
    )
    if not messages:
        return []
    first_seq, last_seq = messages[0].seq, messages[-1].seq
    covers = [
        cover
        for layer in layers
        for cover in await layer.list_coverage(db_session, ref.key, chat.line_id, first_seq, last_seq)
    ]
    if ref.only_chat:
        covers = await _leave_out_wide(db_session, ref, covers)
    settings = effective(chat.settings)
    shown = await _read_shown(db_session, chat, settings, layers, only_chat=ref.only_chat)
    filters = filters_of(settings, chat.characters)
    items = []
    for message in messages:
        over_it = [cover for cover in covers if cover.first_seq <= message.seq <= cover.last_seq]
        status, by = find_status(message, over_it, shown, filters)
        items.append({"seq": message.seq, "message_id": message.message_id, "status": status, "by": by})
    return items


async def _leave_out_wide(db_session: DbSession, ref: ChatRef, covers: Sequence[Coverage]) -> list[Coverage]:
    """Return the coverage without what was learnt in scopes wider than the chat."""
    learnt = [str(cover.id) for cover in covers if cover.state == "learnt"]
    own = await list_own_ids(db_session, ref.key, learnt)
    return [cover for cover in covers if cover.state != "learnt" or str(cover.id) in own]


async def _read_shown(
    db_session: DbSession, chat: ChatLine, settings: ChatSettings, layers: Sequence[Layer], *, only_chat: bool
) -> Shown:
    """Return what the context contains, for the whole line: a page of messages is not enough to compute the budgets."""
    queries = (in_use().own_queries if only_chat else in_use().queries) or {}
    row = await find_context(db_session.raw, chat.tenant, chat.chat_key, chat.line_id, queries)
    if row is None:
        raise LookupError(f"the line {chat.line_id} is gone")
    material = read_material(row, layers, None)
    contributions = [one for layer in material.contributed.values() for one in layer.segments]
    style = style_of(settings, chat.characters, chat.time_zone, chat.user_name)
    pinned, pinned_over = choose_pinned(material.pinned, settings, style)
    return Shown(
        chat.anchor_seq,
        in_prompt={source for one in contributions for item in one.items for source in item.sources},
        over_budget={source for one in contributions for item in one.left_out for source in item.sources},
        pinned={line.seq for line in pinned},
        pinned_over_budget={line.seq for line in pinned_over},
        unanswered={entry.seq for entry in material.history if not is_said(entry)},
    )
