"""A forced cut waits until searches for breaks have decided whether scenes end on the messages before it.

A *forced* cut shortens a history that has reached its greatest length. If it falls in the open scene, that scene ends
at the cut. Without the wait, the cut could end a scene in the middle. This matters for an import, which can exceed
the greatest length before the first search for a break has run. The wait ends after ten minutes, or when the search
has failed for good.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from app.chats.head import Head
from app.chats.heads import read_head
from app.chats.scheduling import cancel_automatic, find_scheduled
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.job import Job, Made
from app.scenes.open_scene import OpenScene
from app.scenes.schedule import DETECT, NAME, WAIT, list_eligible, read_open_scene, schedule_once
from app.scenes.settings import SceneSettings

LONGEST_WAIT = timedelta(minutes=10)


async def seeks_edges(db_session: DbSession, head: Head, until_seq: int, *, now: datetime) -> bool:
    """Return whether a forced cut has to wait for searches up to `until_seq` (inclusive), and schedule the next one."""
    opened = await read_open_scene(db_session, head)
    if not await _may_find(db_session, head, opened, until_seq, now):
        await stop_waiting(db_session, head)
        return False
    if opened.waits_since is None:
        opened = replace(opened, waits_since=now.isoformat())
    head.cursors[NAME] = opened.to_json()
    at_seq = opened.unjudged_from
    await schedule_once(db_session, head, DETECT, at_seq=at_seq, now=now, settle_s=0, patient=True)
    wait_s = LONGEST_WAIT.total_seconds()
    await schedule_once(db_session, head, WAIT, at_seq=at_seq, now=now, settle_s=wait_s, patient=True)
    return True


async def end_wait(db_session: DbSession, head: Head) -> None:
    """Stop waiting if the history has become too short for a forced cut."""
    if head.history_messages < head.settings.max_messages:
        await stop_waiting(db_session, head)


async def stop_waiting(db_session: DbSession, head: Head) -> None:
    """Record that no forced cut waits for searches."""
    opened = OpenScene.from_json(head.cursors.get(NAME))
    if opened.waits_since is not None:
        head.cursors[NAME] = replace(opened, waits_since=None).to_json()
        await cancel_automatic(db_session, head, NAME, [WAIT])


async def _may_find(db_session: DbSession, head: Head, opened: OpenScene, until_seq: int, now: datetime) -> bool:
    """Return whether a search can still find a break up to `until_seq` in time."""
    scenes = SceneSettings.of(head.settings)
    if not (scenes.enabled and scenes.detect):
        return False
    if opened.waits_since is not None and now - datetime.fromisoformat(opened.waits_since) >= LONGEST_WAIT:
        return False
    # A message can be judged only if at least `offset` messages follow it, or one if `offset` is 0.
    offset = max(scenes.offset, 1)
    unjudged = await list_eligible(db_session, head, opened.unjudged_from, offset + 1)
    if len(unjudged) <= offset or unjudged[0].seq > until_seq:
        return False
    search = await find_scheduled(db_session, head, NAME, DETECT)
    return search is None or search.failed_at is None


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> bool | None:
    """Return True if the line exists, else None."""
    return await read_head(db_session, *claimed.owner.line) is not None or None


async def _draft(_ctx: JobContext, _claimed: Claimed, source: bool) -> bool:
    return source


async def _save(_db_session: DbSession, _made: Made[bool, bool]) -> None:
    """Do nothing: a waiting cut is decided again after every job."""


END_WAIT = Job(prefix=WAIT, read=_read, draft=_draft, save=_save)
