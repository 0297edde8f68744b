"""Operations on chats: put, get, list, erase, and counting their background work."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from pydantic import ValidationError
from sqlalchemy import Table as CoreTable
from sqlalchemy import select

from app.chats import queries
from app.chats.character_list import merge_characters
from app.chats.chat_lock import ChatRef, lock_lines, lock_or_create
from app.chats.errors import ChatNotFound, LineNotFound
from app.chats.events import ChatEdited
from app.chats.models import ChatLine
from app.chats.revision import SETTINGS, record
from app.chats.schemas import ChatPut
from app.chats.settings import check_overrides, merge, still_valid
from app.kit.auth import Caller, Forbidden
from app.kit.db import Database, DbSession, defer, list_tables
from app.kit.errors import Invalid, Unavailable
from app.kit.fast_path import locate_below
from app.kit.ids import chat_key, user_key, uuid7
from app.kit.owners import NO_LINE, Owner, OwnerErased
from app.kit.scopes import raise_scope_of
from app.kit.wire import MAX_METADATA_BYTES
from app.kit.work_queue import WorkItem

SCOPE_SETTINGS = (("memories", "learn_scope"), ("diary", "scope"))
"""The settings that let other chats see what a chat learns. Their default is `chat`, in all presets.

A token that is limited to the chat itself cannot choose a wider scope. Nor can a token that is limited to a user or a
chat choose `global`: what the chat then learnt would be in the prompts of all users.
"""

_ERASING_ROUNDS = 10
"""How often an erasure lists and erases the chats of a user before it gives up, because new ones keep appearing."""


async def put_chat(db_session: DbSession, ref: ChatRef, put: ChatPut, *, now: datetime) -> tuple[ChatLine, bool]:
    """Create a chat or merge `put` into it; return the chat and whether it was created.

    Raises ChatNotFound, CharacterMismatch, CharacterTaken, and Forbidden if the caller's token may not change the
    chat's user, or may not choose the scope of a setting (`may_choose_scope`).
    """
    if ref.only_user is not None and "user_id" in put.model_fields_set and put.user_id != ref.only_user:
        raise ChatNotFound("This token is limited to a user. Leave out user_id, or give the id of the token's user.")
    head, created = await lock_or_create(db_session, ref, now)
    chat = await get_chat(db_session, ref)
    if "user_id" in put.model_fields_set and put.user_id != chat.user_id and ref.keeps_user:
        raise Forbidden("A token that is limited to a chat cannot change the chat's user.")
    record(db_session, head.line, SETTINGS)
    line_changes = _line_changes(chat, put)
    if "settings" in line_changes:
        _check_scopes(ref, chat.settings, line_changes["settings"])
    await queries.update_line(db_session, head.line, line_changes)
    changes, former_key = _chat_changes(chat, put), chat.user_key
    await queries.update_chat(db_session, ref.key, changes)
    await db_session.refresh(chat)
    if not created:
        defer(db_session, ChatEdited(ref.key, head.line_id))
        if "user_key" in changes:  # other chats of both users can show data of this chat
            for key in filter(None, (former_key, chat.user_key)):
                raise_scope_of(db_session, key, is_tenant=False)
    return chat, created


async def get_chat(db_session: DbSession, ref: ChatRef) -> ChatLine:
    """Return the chat on its current line. Raises ChatNotFound."""
    chat = await queries.find_chat(db_session, ref.key)
    if chat is None:
        raise ref.unknown()
    ref.check(chat.user_id)
    return chat


async def get_line(db_session: DbSession, ref: ChatRef, line: UUID | None) -> ChatLine:
    """Return the chat on the given line, the current one by default. Raises ChatNotFound, LineNotFound."""
    chat = await get_chat(db_session, ref)
    if line is None or line == chat.line_id:
        return chat
    other = await queries.find_line(db_session, ref.key, line)
    if other is None:
        raise LineNotFound(f"The chat {ref.chat_id!r} has no line {str(line)!r}.")
    return other


async def list_chats(
    db_session: DbSession,
    caller: Caller,
    *,
    user_id: str | None,
    limit: int,
    before: tuple[datetime, UUID] | None,
) -> Sequence[ChatLine]:
    """Return chats by creation; those of one user by last activity. A limited caller gets only its own chats."""
    if caller.user_id is not None:
        if user_id not in (None, caller.user_id):
            return []
        user_id = caller.user_id
    if caller.chat_id is not None:
        chat = await queries.find_chat(db_session, chat_key(caller.tenant, caller.chat_id))
        return [chat] if chat and not before and user_id in (None, chat.user_id) else []
    if user_id is None:
        return await queries.list_chats(db_session, tenant=caller.tenant, limit=limit, before=before)
    return await queries.list_user_chats(
        db_session, user_key=user_key(caller.tenant, user_id), limit=limit, before=before
    )


async def count_work(db_session: DbSession, chats: Sequence[ChatLine]) -> list[tuple[int, int]]:
    """Return how many work items of each chat are due, and how many have failed for good."""
    counted = await queries.count_work(db_session, chats) if chats else {}
    return [counted.get(chat.chat_key, (0, 0)) for chat in chats]


async def erase_chat(db_session: DbSession, ref: ChatRef) -> None:
    """Delete a chat physically, on all lines, with everything derived from it. Raises ChatNotFound."""
    users = await lock_lines(db_session, ref.key)
    if not users:
        raise ref.unknown()
    for user_id in users:
        ref.check(user_id)
    wide_keys = await _erase(db_session, ref.key)
    defer(db_session, OwnerErased(ref.tenant, ref.key, next(iter(users)), wide_keys))


async def erase_user(database: Database, caller: Caller, user_id: str) -> None:
    """Delete all chats of a user physically, then what belongs to the user itself. Raises ChatNotFound, Unavailable.

    Each chat is deleted in a separate transaction. If one transaction deleted several chats, it could deadlock with a
    fork: the fork has locked one of these chats, and waits to insert a new chat with the id of another one, which the
    erasure has just deleted. If the process dies in between, the same call deletes the rest.

    A fork locks the chat that it copies, so a fork that has begun is committed before that chat is deleted. The fork
    adds a chat of the user, so the chats are listed again until the user has none.
    """
    if caller.chat_id is not None or caller.user_id not in (None, user_id):
        raise ChatNotFound(f"There is no user {user_id!r}.")
    for _ in range(_ERASING_ROUNDS):
        async with database.unit_of_work(caller.tenant) as db_session:
            keys = await queries.list_user_chat_keys(db_session, user_key(caller.tenant, user_id))
        if not keys:
            break
        for key in keys:
            async with database.unit_of_work(caller.tenant, key) as db_session:
                # The list was read without a lock: the chat may have been erased or given to another user since.
                if set(await lock_lines(db_session, key)) == {user_id}:
                    wide_keys = await _erase(db_session, key)
                    defer(db_session, OwnerErased(caller.tenant, key, user_id, wide_keys))
    else:
        raise Unavailable("Other requests kept creating chats of this user during the erasure; try again.")
    async with database.unit_of_work(caller.tenant) as db_session:
        owner = Owner.of_user(caller.tenant, user_id)
        await _erase_owned(db_session, owner)
        defer(db_session, OwnerErased(caller.tenant, None, user_id))


async def _erase(db_session: DbSession, key: UUID) -> frozenset[UUID]:
    """Delete a chat's rows on all lines, in each table with a column `chat_key` or with `owner_key` and `line_id`.

    Return the `wide_key`s of the rows: the keys of the users and tenants whose shared data has a part from this chat.
    If a user's id is the same as the chat's id, both have the same key. The rows of that user are kept: they belong
    to no line (`NO_LINE`).
    """
    wide_keys = frozenset[UUID]()
    for table in list_tables():
        if {"chat_key", "wide_key"} <= set(table.c.keys()):
            of_chat = select(table.c.wide_key).where(table.c.chat_key == key, table.c.wide_key.is_not(None)).distinct()
            wide_keys |= set(await db_session.scalars(of_chat))
    lines = (await db_session.scalars(select(ChatLine.line_id).where(ChatLine.chat_key == key))).all()
    for table in list_tables():
        if "chat_key" in table.c:
            for line_id in lines:  # line by line, so that no statement exceeds the database's `statement_s`
                await db_session.execute(table.delete().where(table.c.chat_key == key, table.c.line_id == line_id))
            await db_session.execute(table.delete().where(table.c.chat_key == key))
    for table in _list_owned():
        await db_session.execute(table.delete().where(table.c.owner_key == key, table.c.line_id != NO_LINE))
    return wide_keys


async def _erase_owned(db_session: DbSession, owner: Owner) -> None:
    """Delete what belongs to a user but to no chat.

    Work items are deleted first: a job that saves something for the user has locked its item, so this DELETE waits for
    the job's commit, and the next statements see what the job saved.
    """
    for table in sorted(_list_owned(), key=lambda table: table.name != WorkItem.__tablename__):
        await db_session.execute(table.delete().where(table.c.owner_key == owner.key, table.c.line_id == owner.line_id))


def _list_owned() -> list[CoreTable]:
    """Return the tables in which each row belongs to a line, a user or a tenant."""
    return [table for table in list_tables() if {"owner_key", "line_id"} <= set(table.c.keys())]


def _line_changes(chat: ChatLine, put: ChatPut) -> dict[str, Any]:
    """Return the line's columns that `put` sets.

    Raises RequestValidationError for settings that are not valid, CharacterMismatch, CharacterTaken.
    """
    given = put.model_dump(exclude_unset=True, mode="json")
    values: dict[str, Any] = {
        name: given[name] for name in ("user_name", "user_persona", "system_prompt", "language") if name in given
    }
    if "characters" in given:
        values["characters"] = merge_characters(chat.characters, given["characters"] or [], uuid7)
    if "time_zone" in given:
        values["time_zone"] = given["time_zone"] or "UTC"
    if "settings" in given:
        values["settings"] = {} if given["settings"] is None else _merge_settings(chat, given["settings"])
    return values


def _chat_changes(chat: ChatLine, put: ChatPut) -> dict[str, Any]:
    """Return the chat's columns that `put` changes. Raises Invalid for too much metadata."""
    values: dict[str, Any] = {}
    if "metadata" in put.model_fields_set:
        metadata = {} if put.metadata is None else _merge_metadata(chat, put.metadata)
        if metadata != chat.chat_metadata:  # a change is written to all lines, of which there may be many
            values["metadata"] = metadata
    if "user_id" in put.model_fields_set and put.user_id != chat.user_id:
        values["user_id"] = put.user_id
        values["user_key"] = user_key(chat.tenant, put.user_id) if put.user_id else None
    return values


def may_choose_scope(ref: ChatRef, scope: Any) -> bool:
    """Return whether the caller may choose a value for a setting of `SCOPE_SETTINGS`; None is the default."""
    if scope in (None, "chat"):
        return True
    return not ref.only_chat and not (scope == "global" and ref.is_limited)


async def check_line_scopes(db_session: DbSession, ref: ChatRef, line_id: UUID) -> None:
    """Raise Forbidden if the caller must not restore or switch to a line, because its settings choose other scopes.

    A caller with a limited token must not choose all scopes (`may_choose_scope`). Without this check, a limited token
    could bring back settings that a key has narrowed since. Raises ChatNotFound, LineNotFound.
    """
    if ref.is_limited:
        current = await get_chat(db_session, ref)
        _check_scopes(ref, current.settings, (await get_line(db_session, ref, line_id)).settings)


def narrow_scopes(ref: ChatRef, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the values of `SCOPE_SETTINGS` that the caller may not choose, for a copy of a chat."""
    narrow = dict(settings)
    for section, name in SCOPE_SETTINGS:
        chosen = narrow.get(section) or {}
        if not may_choose_scope(ref, chosen.get(name)):
            narrow[section] = {key: value for key, value in chosen.items() if key != name}
    return narrow


def _check_scopes(ref: ChatRef, former: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise Forbidden if a changed setting makes the chat write into a scope into which the caller must not write."""
    for section, name in SCOPE_SETTINGS:
        before, after = ((given.get(section) or {}).get(name) for given in (former, settings))
        if after != before and not may_choose_scope(ref, after):
            raise Forbidden(f"A token that is limited to {_limit_of(ref)} cannot set {section}.{name} to {after!r}.")


def _limit_of(ref: ChatRef) -> str:
    return "the chat" if ref.keeps_user else "a user"


def _merge_settings(chat: ChatLine, given: dict[str, Any]) -> dict[str, Any]:
    merged = merge(still_valid(chat.settings), given)
    try:
        check_overrides(merged)
    except ValidationError as error:
        raise locate_below(("body", "settings"), error) from None
    return merged


def _merge_metadata(chat: ChatLine, given: dict[str, Any]) -> dict[str, Any]:
    merged = merge(chat.chat_metadata, given)
    if len(orjson.dumps(merged)) > MAX_METADATA_BYTES:
        message = f"must be at most {MAX_METADATA_BYTES} bytes of JSON after the merge"
        raise Invalid(f"metadata: {message}", errors=[{"loc": ["body", "metadata"], "msg": message}])
    return merged
