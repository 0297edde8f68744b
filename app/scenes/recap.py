"""Commands on the running recap: read, write, choose and delete versions, rebuild."""

from datetime import datetime
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.heads import read_head
from app.chats.models import ChatLine
from app.chats.scheduling import get_scheduled, schedule, unschedule
from app.chats.service import get_line
from app.kit import work_queue
from app.kit.db import DbSession, defer
from app.layers.in_prompt import list_sources
from app.narratives import service as narratives
from app.narratives.service import ListedVersion
from app.scenes.errors import ScenesOff
from app.scenes.folding import RECAP, read_recap_state, reconcile_fold_work
from app.scenes.schedule import FOLD, NAME, begin, hides, schedule_hide
from app.scenes.segment import contribute, source_of
from app.scenes.settings import SceneSettings

_BEFORE_ALL = 0
"""The `begins_seq` of a person's text if there is no version to replace; 0, so that every copy of the line has it."""


async def get_recap(db_session: DbSession, ref: ChatRef, *, line: UUID | None = None) -> ListedVersion | None:
    """Return the version in use, or None if there is none. Raises ChatNotFound, LineNotFound."""
    chat = await get_line(db_session, ref, line)
    head = await read_head(db_session, ref.key, chat.line_id)
    recap_state = await read_recap_state(db_session, head) if head else None
    if head is None or recap_state is None or recap_state.shown is None:
        return None
    version = await narratives.read_version(db_session, head.line, RECAP, recap_state.shown.version)
    return ListedVersion(version, recap_state.chain.is_stale(version.version), version.version == shown_version(chat))


async def list_versions(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None, before: int | None, limit: int
) -> list[ListedVersion]:
    """Return a page of versions, newest first. Raises ChatNotFound, LineNotFound."""
    chat = await get_line(db_session, ref, line)
    line_key = (ref.key, chat.line_id)
    return await narratives.list_versions(
        db_session, line_key, RECAP, shown=shown_version(chat), before=before, limit=limit
    )


async def get_version(db_session: DbSession, ref: ChatRef, version: int, *, line: UUID | None = None) -> ListedVersion:
    """Return one version. Raises ChatNotFound, LineNotFound, VersionNotFound."""
    chat = await get_line(db_session, ref, line)
    return await narratives.get_version(db_session, (ref.key, chat.line_id), RECAP, version, shown=shown_version(chat))


def shown_version(chat: ChatLine) -> int | None:
    """Return the version that contexts of the line contain, or None."""
    version: int | None = chat.context_cache.get(NAME, {}).get("version")
    return version if source_of(version) in list_sources(contribute, chat, NAME) else None


async def write_recap(db_session: DbSession, ref: ChatRef, text: str, *, now: datetime) -> None:
    """Replace the version in use by a person's text; the next fold builds on it.

    Cancels a scheduled rebuild. Raises ChatNotFound.
    """
    head = await lock_head(db_session, ref)
    begin(head)
    await unschedule(db_session, head, NAME, [FOLD])
    recap_state = await read_recap_state(db_session, head)
    if recap_state.shown is None:
        await narratives.reset_current(db_session, head.line, RECAP)
    else:
        await narratives.make_current(db_session, head.line, RECAP, recap_state.shown.version)
    await narratives.write_version(db_session, head.line, RECAP, text, begins_seq=_BEFORE_ALL, now=now)
    await reconcile_fold_work(db_session, head, now=now)
    await _show(db_session, head, now)


async def choose_version(db_session: DbSession, ref: ChatRef, version: int, *, now: datetime) -> None:
    """Make a version the current one, and cancel a scheduled rebuild.

    The scenes that this version does not cover are folded into it again. The first fold is scheduled at once, unless
    valid steps of newer versions cover all of these scenes. If they do, the first fold waits, at the longest until the
    next scene is closed and has its recap. Raises ChatNotFound, VersionNotFound.
    """
    head = await lock_head(db_session, ref)
    await unschedule(db_session, head, NAME, [FOLD])
    await narratives.make_current(db_session, head.line, RECAP, version)
    await reconcile_fold_work(db_session, head, now=now, only_news=True)
    await _show(db_session, head, now)


async def delete_version(db_session: DbSession, ref: ChatRef, version: int, *, now: datetime) -> None:
    """Delete a version; if it was the current one, the highest remaining version becomes current.

    Raises ChatNotFound, VersionNotFound.
    """
    head = await lock_head(db_session, ref)
    await narratives.delete_version(db_session, head.line, RECAP, version, now=now)
    await _show(db_session, head, now)


async def rebuild(db_session: DbSession, ref: ChatRef, *, now: datetime) -> work_queue.WorkItem:
    """Schedule a rebuild of the recap from the first scene on; existing versions stay in the list.

    Raises ChatNotFound, and ScenesOff while scenes are off: only versions that a person wrote are used then, and a
    rebuild would replace them.
    """
    head = await lock_head(db_session, ref)
    if not SceneSettings.of(head.settings).enabled:
        raise ScenesOff("This chat's scenes are switched off; set scenes.enabled to true to rebuild their recap.")
    begin(head)
    await schedule(db_session, head, NAME, [work_queue.NewWork(FOLD, 1, {"rebuild": True})], now=now, settle_s=0)
    defer(db_session, LayerChanged(head, NAME))
    return await get_scheduled(db_session, head, NAME, FOLD)


async def _show(db_session: DbSession, head: Head, now: datetime) -> None:
    """Update what depends on the version in use: contexts, a waiting cut, auto-hide."""
    if hides(head):
        await schedule_hide(db_session, head, now=now)
    defer(db_session, LayerChanged(head, NAME))
