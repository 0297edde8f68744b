"""Chooses the entries of other chats that a shared diary shows; raises the user's revision when shared diaries change.

`ETag`s of contexts are made from revisions, so contexts of the user's other chats are then made again.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from app.chats.events import CurrentLineReplaced
from app.chats.head import Head
from app.diary.settings import DiarySettings
from app.diary.shared import queries
from app.diary.shared.merging import Own, choose, choose_until
from app.kit.db import DbSession
from app.kit.owners import Owner, OwnerErased
from app.kit.scopes import raise_scope, raise_scope_of


async def hold_shared(
    db_session: DbSession,
    head: Head,
    character: str,
    own: Own,
    texts: Mapping[str, Any],
    chosen: Mapping[str, Any] | None,
    *,
    is_first: bool,
) -> dict[str, Any]:
    """Return the cached form of a shared diary.

    It has the line's own entries, and the ids of the entries of other chats that the segment `diary` contains.

    Args:
        db_session: Open unit of work.
        head: The line's head.
        character: The character.
        own: The diary of the line itself.
        texts: The cached form that this diary would have if it were not shared.
        chosen: The entries of other chats that the segment `diary` has contained so far; None to choose them again.
        is_first: Whether no diary is cached yet, because the chat has had no cut and no entry. In such a chat, `diary`
            shows the entries of other chats from before the chat began, so only these are chosen.

    """
    if chosen is None:
        lines = DiarySettings.of(head.settings).lines
        began_us, others = await queries.list_newest(db_session, head.line, character)
        choice = choose_until(own, others, lines, began_us) if is_first else choose(own, others, lines)
        chosen = choice.to_json()
    kept = {name: texts[name] for name in ("held", "last_seq") if name in texts}
    return {**kept, "own": own.to_json(), "shared": chosen}


def note_shared(
    db_session: DbSession, user_key: UUID | None, former: Mapping[str, Mapping[str, Any]], *, is_shared: bool
) -> None:
    """Raise the user's revision if the line shares its diaries, or has shared them; `former` are its cached texts."""
    if user_key is not None and (is_shared or any("shared" in texts for texts in former.values())):
        raise_scope_of(db_session, user_key, is_tenant=False)


async def on_line_replaced(db_session: DbSession, event: CurrentLineReplaced, **_: Any) -> None:
    """Raise the user's revision if any line of the chat shares its diaries."""
    for user_key in await queries.list_sharing_users(db_session, event.chat_key):
        raise_scope_of(db_session, user_key, is_tenant=False)


async def erase_owner(db_session: DbSession, event: OwnerErased, **_: Any) -> None:
    """Raise the revision of the user of an erased chat, if the chat may have shared its diaries."""
    if event.chat_key is None or event.user_id is None:
        return
    owner = Owner.of_user(event.tenant, event.user_id)
    if await queries.has_shared(db_session, owner):
        raise_scope(db_session, owner)
