"""The inclusion report: how each message is in the context, read from what the context would be made of."""

from collections.abc import Sequence
from typing import Any

from app.chats.layers import Layer
from app.chats.models import Chat
from app.chats.service import ChatRef, filters_of, get_chat, list_messages
from app.chats.settings import ChatSettings, effective
from app.context.inclusion import Shown, find_status
from app.context.pinned import choose_pinned
from app.context.queries import list_pinned
from app.context.shown import choose_character
from app.context.telling import tell_all
from app.context.wording import speech_of
from app.kit.db import DbSession
from app.memos.segment import choose_lines


async def list_inclusion(
    db_session: DbSession, ref: ChatRef, layers: Sequence[Layer], *, after_seq: int, limit: int
) -> list[dict[str, Any]]:
    """How each message after a seq is in the chat's default context. Raises ChatNotFound."""
    chat = await get_chat(db_session, ref)
    messages = await list_messages(
        db_session, ref.key, chat.line_id, after_seq=after_seq, before_seq=None, limit=limit, newest=False
    )
    if not messages:
        return []
    first_seq, last_seq = messages[0].seq, messages[-1].seq
    covers = [
        cover
        for layer in layers
        for cover in await layer.list_covers(db_session, ref.key, chat.line_id, first_seq, last_seq)
    ]
    settings = effective(chat.settings)
    shown = await _read_shown(db_session, chat, settings, layers)
    filters = filters_of(settings, chat.characters)
    items = []
    for message in messages:
        over_it = [cover for cover in covers if cover.first_seq <= message.seq <= cover.last_seq]
        status, by = find_status(message, over_it, shown, filters)
        items.append({"seq": message.seq, "message_id": message.message_id, "status": status, "by": by})
    return items


async def _read_shown(db_session: DbSession, chat: Chat, settings: ChatSettings, layers: Sequence[Layer]) -> Shown:
    """What the context shows, of the whole chat: a budget fills from the newest, on whichever page that is."""
    memos, memos_over = choose_lines(chat.memo_window, settings)
    told = tell_all(layers, chat.shown, settings, choose_character(chat.characters, None))
    entries = await list_pinned(db_session, chat.chat_key, chat.line_id)
    speech = speech_of(settings, chat.characters, chat.time_zone)
    pinned, pinned_over = choose_pinned(entries, settings, speech)
    return Shown(
        chat.anchor_seq,
        standing={f"memo:{line.memo_id}" for line in memos}.union(*[one.sources for one in told]),
        over_budget={f"memo:{line.memo_id}" for line in memos_over},
        pinned={line.seq for line in pinned},
        pinned_over_budget={line.seq for line in pinned_over},
    )
