"""The job of auto-hide: reads all scenes once, and hides and un-hides all messages in one statement."""

from collections.abc import Iterable, Sequence

from app.chats.heads import read_head
from app.chats.ranges import Range, join_ranges
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.job import Job, Made
from app.messages.editing import hide_by_scenes
from app.scenes import queries
from app.scenes.folding import read_recap_state
from app.scenes.schedule import HIDE, hides
from app.scenes.settings import SceneSettings


def count_old(closed: int, *, has_open: bool, keep: int) -> int:
    """Return how many of `closed` scenes are older than the newest `keep`. An open scene is one of the newest."""
    return max(closed - max(keep - has_open, 0), 0)


def choose_hidden(
    scenes: Sequence[tuple[int, int, bool]], *, has_open: bool, keep: int | None, covered_seq: int
) -> list[Range]:
    """Return the ranges to hide, with adjacent scenes joined.

    Args:
        scenes: (first_seq, last_seq, has_recap) of the closed scenes, in order; `has_recap` is whether the scene's own
            recap is valid or not needed.
        has_open: Whether a message follows the last of them.
        keep: How many of the newest scenes stay in sight; None or a negative number hides nothing.
        covered_seq: The last seq that the running recap covers.

    """
    if keep is None or keep < 0:
        return []
    old = scenes[: count_old(len(scenes), has_open=has_open, keep=keep)]
    return join_ranges((first, last) for first, last, has_recap in old if has_recap and last <= covered_seq)


def find_rest(ranges: Iterable[Range], last_seq: int) -> list[Range]:
    """Return the parts of `1…last_seq` that are outside `ranges`, which are in order and do not overlap."""
    rest: list[Range] = []
    next_seq = 1
    for first, last in ranges:
        if next_seq < first:
            rest.append((next_seq, first - 1))
        next_seq = last + 1
    if next_seq <= last_seq:
        rest.append((next_seq, last_seq))
    return rest


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
        covered_seq=(await read_recap_state(db_session, head)).covered_seq,
    )
    await hide_by_scenes(db_session, head, hidden, find_rest(hidden, head.head_seq), now=made.now)


HIDE_SCENES = Job(prefix=HIDE, read=_read, draft=_draft, save=_save)
