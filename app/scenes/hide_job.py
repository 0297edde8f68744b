"""Auto-hide: reads all scenes once, and hides and un-hides all messages in one statement.

Only the job hides messages. It waits for further changes, so `show_again` does not leave un-hiding to it where the next
context would have too few messages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.chats.head import Head
from app.chats.heads import read_head
from app.chats.ranges import Range, join_ranges
from app.kit.db import DbSession
from app.kit.job_context import JobContext
from app.kit.work_queue import Claimed
from app.layers.job import Job, Made
from app.messages.calls import drop_unsent
from app.messages.editing import hide_by_scenes
from app.messages.range_reads import has_message_after
from app.messages.reads import list_newest_summarisable
from app.scenes import queries
from app.scenes.folding import read_recap_state
from app.scenes.open_scene import OpenScene
from app.scenes.schedule import HIDE, NAME, hides
from app.scenes.settings import SceneSettings


def count_old(closed: int, *, has_open: bool, keep: int) -> int:
    """Return how many of `closed` scenes are older than the newest `keep`. An open scene is one of the newest."""
    return max(closed - max(keep - has_open, 0), 0)


def choose_hidden(
    scenes: Sequence[tuple[int, int, bool]], *, has_open: bool, keep: int | None, covered_seq: int, kept_from: int
) -> list[Range]:
    """Return the ranges to hide, with adjacent scenes joined.

    Args:
        scenes: (first_seq, last_seq, has_recap) of the closed scenes, in order; `has_recap` is whether the scene's own
            recap is valid or not needed.
        has_open: Whether a message follows the last of them.
        keep: How many of the newest scenes stay in sight; None or a negative number hides nothing.
        covered_seq: The last seq that the running recap covers.
        kept_from: The seq of the first message that has to stay in sight, so that enough messages are left.

    """
    old = list_old(scenes, has_open=has_open, keep=keep, covered_seq=covered_seq)
    return join_ranges(one for one in old if one[1] < kept_from)


def list_old(
    scenes: Sequence[tuple[int, int, bool]], *, has_open: bool, keep: int | None, covered_seq: int
) -> list[Range]:
    """Return the scenes that are hidden once enough messages follow them; for the arguments see `choose_hidden`."""
    if keep is None or keep < 0:
        return []
    old = scenes[: count_old(len(scenes), has_open=has_open, keep=keep)]
    return [(first, last) for first, last, has_recap in old if has_recap and last <= covered_seq]


def count_missing(old: Sequence[Range], newest: Sequence[int], keep_messages: int, kept_from: int) -> int:
    """Return how many more messages have to follow until another of `old` can be hidden; 0 if all can be hidden.

    `newest` are the seqs of the newest messages that can be sent or that only auto-hide hides, at most `keep_messages`.
    """
    held = next((last for _, last in old if last >= kept_from), None)
    return 0 if held is None else keep_messages - sum(seq > held for seq in newest)


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


async def show_again(db_session: DbSession, head: Head, *, now: datetime) -> None:
    """Un-hide what auto-hide has hidden after the last scene that it may hide, because messages were taken away.

    These are the messages that the next context needs. What it may no longer hide before them is left to the job, so
    that a removal does not read a long line as a whole. The caller has locked the line's row, and schedules the job.
    """
    first_seq = await find_last_hidden(db_session, head) + 1
    if first_seq <= head.head_seq:
        await hide_by_scenes(db_session, head, [], [(first_seq, head.head_seq)], now=now)


async def find_last_hidden(db_session: DbSession, head: Head) -> int:
    """Return the last seq of the last scene that `read_sight` would hide, or 0, without reading the scenes before it.

    The line's row does not have to be locked.
    """
    keep = _keep_of(head)
    if keep is None or keep < 0:
        return 0
    breaks = await queries.list_newest_breaks(db_session, head, keep + 1)
    has_open = await has_message_after(db_session, *head.line, breaks[0] if breaks else 0)
    old = breaks[max(keep - has_open, 0) :]
    if not old:
        return 0
    covered_seq = (await read_recap_state(db_session, head)).covered_seq
    _, kept_from = await _read_kept(db_session, head)
    return await queries.find_last_with_recap(db_session, head, min(old[0], covered_seq, kept_from - 1)) or 0


async def _save(db_session: DbSession, made: Made[bool, bool]) -> None:
    """Hide the old scenes that the running recap covers, and un-hide all other messages that auto-hide has hidden.

    At least `history.keep_messages` messages stay in sight, as many as the history keeps after a cut.
    """
    head = made.head
    sight = await read_sight(db_session, head)
    if NAME in head.cursors:
        head.cursors[NAME] = replace(OpenScene.from_json(head.cursors[NAME]), hide_in=sight.missing).to_json()
    await hide_by_scenes(db_session, head, sight.hidden, find_rest(sight.hidden, head.head_seq), now=made.now)


@dataclass(frozen=True, slots=True)
class Sight:
    """The ranges that auto-hide may hide, and `count_missing` of the other old scenes."""

    hidden: Sequence[Range]
    missing: int


async def read_sight(db_session: DbSession, head: Head) -> Sight:
    """Read all closed scenes of a line, and return what auto-hide may hide.

    The line's row does not have to be locked.
    """
    scenes = await queries.list_closed(db_session, head)
    last_break = scenes[-1][1] if scenes else 0
    has_open = await has_message_after(db_session, *head.line, last_break)
    keep = _keep_of(head)
    covered_seq = (await read_recap_state(db_session, head)).covered_seq
    newest, kept_from = await _read_kept(db_session, head)
    hidden = choose_hidden(scenes, has_open=has_open, keep=keep, covered_seq=covered_seq, kept_from=kept_from)
    old = list_old(scenes, has_open=has_open, keep=keep, covered_seq=covered_seq)
    return Sight(hidden, count_missing(old, newest, head.settings.history.keep_messages, kept_from))


def _keep_of(head: Head) -> int | None:
    """Return how many of the newest scenes stay in sight; None or a negative number hides nothing."""
    return SceneSettings.of(head.settings).auto_hide if hides(head) else None


async def _read_kept(db_session: DbSession, head: Head) -> tuple[list[int], int]:
    """Return the seqs of the newest messages (`count_missing`), and the first seq that has to stay in sight."""
    keep_messages = head.settings.history.keep_messages
    newest = await _list_newest(db_session, head, keep_messages)
    return newest, newest[0] if len(newest) == keep_messages else 1


async def _list_newest(db_session: DbSession, head: Head, most: int) -> list[int]:
    """Return the seqs of the newest `most` messages that are sent or that only auto-hide hides, in order."""
    limit = most
    while True:
        read = await list_newest_summarisable(db_session, *head.line, limit)
        sent = drop_unsent(read)
        if len(sent) >= most or len(read) < limit:
            return [one.seq for one in sent[-most:]]
        limit = 2 * limit + 32


HIDE_SCENES = Job(prefix=HIDE, read=_read, draft=_draft, save=_save)
