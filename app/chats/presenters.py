"""Presents chats as JSON, for every route that returns them."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.chats import service
from app.chats.characters import list_aliases
from app.chats.models import ChatLine
from app.chats.prompt_cache import find_ttl_s
from app.chats.settings import effective
from app.kit.db import DbSession


async def present_chats(db_session: DbSession, chats: Sequence[ChatLine]) -> list[dict[str, Any]]:
    """Return the chats as JSON, each with its numbers of due and failed work items."""
    counted = await service.count_work(db_session, chats)
    return [_chat_out(chat, due, failed) for chat, (due, failed) in zip(chats, counted, strict=True)]


def _character_out(character: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": character.get("id"),
        "name": character["name"],
        "aliases": list_aliases(character),
        **{name: character[name] for name in ("persona", "disabled") if name in character},
    }


def _chat_out(chat: ChatLine, due: int, failed: int) -> dict[str, Any]:
    settings = effective(chat.settings)
    return {
        "chat_id": chat.chat_id,
        "user_id": chat.user_id,
        "characters": [_character_out(character) for character in chat.characters],
        "user_name": chat.user_name,
        "user_persona": chat.user_persona,
        "system_prompt": chat.system_prompt,
        "settings": settings.model_dump() | {"cache_ttl_s": find_ttl_s(settings, chat.cursors)},
        "time_zone": chat.time_zone,
        "language": chat.language,
        "metadata": chat.chat_metadata,
        "counters": {
            "messages": chat.message_count,
            "turns": chat.turn_count,
            "tokens": chat.token_count,
            "memos": chat.memo_count,
        },
        "line": chat.line_id,
        "anchor_seq": chat.anchor_seq,
        "head_seq": chat.head_seq,
        "work": {"due": due, "failed": failed},
        "created_at": chat.created_at,
        "last_active_at": chat.last_active_at,
    }
