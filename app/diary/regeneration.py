"""Makes the newest fold of a diary again, because a person asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.chats.characters import current_name
from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.scheduling import get_scheduled, schedule
from app.diary import queries
from app.diary.book import choose_diary
from app.diary.errors import NothingToFold
from app.diary.handlers import FOLD, NAME, find_last_folded, narrative_of, read_diary
from app.diary.settings import DiarySettings
from app.kit.db import DbSession, defer
from app.kit.work_queue import NewWork
from app.narratives import service as narratives
from app.narratives.chain import Link


async def regenerate_folded(db_session: DbSession, ref: ChatRef, *, character: str | None, now: datetime) -> UUID:
    """Schedule the newest valid fold of a diary again, without delay, and return the work item's id.

    If there is no valid fold, the first one is scheduled. Raises ChatNotFound; Invalid if it is unclear which diary is
    meant; NothingToFold if diaries are off, or if there is no fold to make again and the diary is short enough.
    """
    head = await lock_head(db_session, ref)
    name = await _choose(db_session, head, character)
    if not DiarySettings.of(head.settings).enabled:
        raise NothingToFold("Diaries are off, so they are not folded; switch on diary.enabled.")
    diary = await read_diary(db_session, head, name)
    if diary.base is not None:
        step = await queries.list_step(db_session, head.line, name, diary.base.first_unit, diary.base.last_unit)
        at_seq = step[0].at_seq
    elif find_last_folded(diary, DiarySettings.of(head.settings).lines) is not None:
        at_seq = diary.entries[0].at_seq
    else:
        raise NothingToFold("The diary is short enough to be shown whole.")
    payload = {"again": diary.base.version if diary.base else None}
    await schedule(db_session, head, NAME, [NewWork(f"{FOLD}{name}", at_seq, payload)], now=now, settle_s=0)
    defer(db_session, LayerChanged(head, NAME))
    return (await get_scheduled(db_session, head, NAME, f"{FOLD}{name}")).work_id


async def _choose(db_session: DbSession, head: Head, named: str | None) -> str:
    """Return the name of the diary that a request names, or else the result of `choose_diary`. Raises Invalid."""
    characters = (await queries.read_cast(db_session, head.line)).characters
    name = None if named is None else current_name(characters, named)
    if name is not None and name in await queries.list_names(db_session, head.line):
        return name
    return choose_diary(characters, name, part="body")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A version that is made again, and its `base`: the version that it builds on; None for the first fold."""

    link: Link
    base: Link | None


async def find_replaced(
    db_session: DbSession, line: queries.Line, character: str, newest: Link | None, payload: Mapping[str, Any]
) -> Replaced | None:
    """Return the version that a work item replaces, or None if the work item makes the next one.

    `newest` is the latest valid version; `payload` is the payload of the work item. It can contain the version that a
    person wants to be made again. If that is no longer the latest valid version, the next fold is made as usual.
    """
    if newest is None or newest.version != payload.get("again"):
        return None
    before = await narratives.read_before(db_session, line, narrative_of(character), newest)
    return Replaced(newest, before.latest_valid())
