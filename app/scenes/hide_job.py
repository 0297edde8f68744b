"""The job of auto-hide: reads all scenes once, and hides and un-hides all messages in one statement."""

from app.chats.service import hide_by_scenes, read_head
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.job import Job, Made
from app.scenes import queries
from app.scenes.folding import read_standing
from app.scenes.hiding import choose_hidden, find_rest
from app.scenes.settings import SceneSettings
from app.scenes.work import HIDE, hides


async def _read(_ctx: JobContext, db_session: DbSession, claimed: Claimed) -> bool | None:
    """Return True if the line exists, else None; `_save` reads the scenes while the line is locked."""
    return await read_head(db_session, *claimed.owner.line) is not None or None


async def _draft(_ctx: JobContext, _claimed: Claimed, source: bool) -> bool:
    return source


async def _save(db_session: DbSession, made: Made[bool, bool]) -> None:
    """Hide the scenes that the settings and the running recap allow to hide, and un-hide the rest."""
    head = made.head
    scenes = await queries.list_closed(db_session, head)
    last_break = scenes[-1][1] if scenes else 0
    hidden = choose_hidden(
        scenes,
        has_open=await queries.has_message_after(db_session, head, last_break),
        keep=SceneSettings.of(head.settings).auto_hide if hides(head) else None,
        covered_seq=(await read_standing(db_session, head)).covered_seq,
    )
    await hide_by_scenes(db_session, head, hidden, find_rest(hidden, head.head_seq), now=made.now)


HIDE_SCENES = Job(prefix=HIDE, read=_read, draft=_draft, save=_save)
