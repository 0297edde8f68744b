"""Reads facts, and sets and deletes them for people; `tools.py` has the tools of the characters.

A fact is a statement that a key has a value. It belongs to a scope: a chat, a user with one character, a user, or the
tenant. For each key, the value of the nearest scope holds.
"""

from collections.abc import Mapping
from datetime import datetime

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.facts.errors import FactNotFound
from app.facts.wording import word_fact
from app.kit.db import DbSession, defer
from app.kit.tokens import count_tokens
from app.knowledge import reading
from app.knowledge.known import Known
from app.knowledge.reading import Value, Viewpoint, view_chat
from app.knowledge.scopes import ScopeKey
from app.knowledge.service import Said, lock_scope, set_by_person

NAME = "facts"
KIND = "fact"


async def list_held(db_session: DbSession, view: Viewpoint) -> Mapping[str, Known]:
    """Return the fact that holds for each key."""
    return await reading.list_held(db_session, view, KIND)


async def get_held(db_session: DbSession, view: Viewpoint, key: str) -> Known:
    """Return the fact that holds for a key. Raises FactNotFound."""
    held = await reading.find_held(db_session, view, KIND, key)
    if held is None:
        raise FactNotFound(f"There is no fact {key!r}.")
    return held


async def list_values(db_session: DbSession, view: Viewpoint, key: str) -> list[Value]:
    """Return the values that a key has and had in each scope of the view, newest first. Raises FactNotFound."""
    values = await reading.list_values(db_session, view, KIND, key)
    if not values:
        raise FactNotFound(f"There never was a fact {key!r}.")
    return values


async def is_deleted(db_session: DbSession, view: Viewpoint, key: str, value: str) -> bool:
    """Return whether a key had `value` and now has no value, because the fact was deleted or forgotten."""
    deciding = await reading.find_deciding(db_session, view, KIND, key)
    if deciding is None or deciding.content is not None:
        return False
    values = await reading.list_values(db_session, view, KIND, key)
    return any(one.known.content == value for one in values)


async def set_in_chat(db_session: DbSession, ref: ChatRef, key: str, value: str, *, now: datetime) -> bool:
    """Set a fact of a chat for a person; return whether no fact of the chat itself had the key.

    Raises ChatNotFound, TooManyKeys.
    """
    head = await lock_head(db_session, ref)
    created = await set_in_scope(db_session, ScopeKey.of_chat(ref.tenant, ref.key), key, value, now=now)
    defer(db_session, LayerChanged(head, NAME))
    return created


async def set_in_scope(db_session: DbSession, scope: ScopeKey, key: str, value: str, *, now: datetime) -> bool:
    """Set a fact of a scope for a person; return whether no fact of the scope had the key. Raises TooManyKeys.

    If a value that a person has set is set again while it holds, nothing is stored. There is one exception: a tool or
    the conversation gave the key a newer value, and this value was taken back with its reply or its messages. It would
    hold again if the reply or the messages returned, so the person's value is stored again, as the newest one.
    """
    await lock_scope(db_session, scope)
    held = await reading.find_held(db_session, Viewpoint.of_scope(scope), KIND, key)
    is_set = held is not None and held.content == value and held.origin == "person"
    if held is None or not is_set or not await reading.is_newest(db_session, scope, KIND, held):
        edited = held is not None and (held.edited or held.origin != "person")
        await set_by_person(db_session, scope, say(key, value), edited=edited, now=now)
    return held is None


async def delete_in_chat(db_session: DbSession, ref: ChatRef, key: str, *, now: datetime) -> None:
    """Take a fact away from a chat, even if a wider scope has it. Raises ChatNotFound, FactNotFound, TooManyKeys."""
    head = await lock_head(db_session, ref)
    view = await view_chat(db_session, ref)
    await get_held(db_session, view, key)
    await set_by_person(db_session, view.scope, say(key, None), edited=False, now=now)
    defer(db_session, LayerChanged(head, NAME))


async def delete_in_scope(db_session: DbSession, scope: ScopeKey, key: str, *, now: datetime) -> None:
    """Take a fact away from a scope. Raises FactNotFound."""
    await lock_scope(db_session, scope)
    await get_held(db_session, Viewpoint.of_scope(scope), key)
    await set_by_person(db_session, scope, say(key, None), edited=False, now=now)


def say(key: str, value: str | None) -> Said:
    """Return the statement that a key has a value, or that it has none any more if `value` is None."""
    return Said(KIND, key, value, count_tokens(word_fact(key, value)) if value else 0)
