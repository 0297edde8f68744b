"""The work items of scenes, and how they are scheduled.

The key of the item that makes a scene's recap is the scene's id. A line has at most one item of each of the keys below.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from app.chats.eligibility import is_eligible
from app.chats.head import Head, RangeMessage
from app.chats.scheduling import find_scheduled, schedule
from app.kit import work_queue
from app.kit.db import DbSession
from app.messages.reads import list_range
from app.scenes import queries
from app.scenes.detection.looks import ENOUGH_MESSAGES, is_look_due
from app.scenes.open_scene import OpenScene
from app.scenes.settings import SceneSettings

_FIRST_LOOK_SEQS = 512
"""How many seqs the first query for messages reads; each further query reads four times as many as the one before."""


async def count_eligible(db_session: DbSession, head: Head, first_seq: int, last_seq: int, *, enough: int) -> int:
    """Count the eligible messages of a range (inclusive); stop early once there are at least `enough`."""
    count, width = 0, _FIRST_LOOK_SEQS
    while first_seq <= last_seq and count < enough:
        until_seq = min(first_seq + width - 1, last_seq)
        messages = await list_range(db_session, *head.line, first_seq, until_seq)
        count += sum(is_eligible(message, head.filters) for message in messages)
        first_seq, width = until_seq + 1, width * 4
    return count


async def list_eligible(db_session: DbSession, head: Head, first_seq: int, limit: int) -> list[RangeMessage]:
    """Return the first `limit` eligible messages from `first_seq` on, in order."""
    found: list[RangeMessage] = []
    width = _FIRST_LOOK_SEQS
    while first_seq <= head.head_seq and len(found) < limit:
        until_seq = min(first_seq + width - 1, head.head_seq)
        messages = await list_range(db_session, *head.line, first_seq, until_seq)
        found += [message for message in messages if is_eligible(message, head.filters)]
        first_seq, width = until_seq + 1, width * 4
    return found[:limit]


async def read_open_scene(db_session: DbSession, head: Head) -> OpenScene:
    """Return the open scene of a line, with its beginning."""
    opened = OpenScene.from_json(head.cursors.get(NAME))
    if opened.first_seq is None:
        opened = opened.begun_at(await queries.find_last_break(db_session, head) + 1)
    return opened


async def count_open_scene(db_session: DbSession, head: Head, opened: OpenScene) -> OpenScene:
    """Return the open scene with its counts, each only as far as `is_search_due` needs it."""
    scenes = SceneSettings.of(head.settings)
    first_seq, last_seq = opened.first_seq or 1, head.head_seq
    enough = scenes.min_messages + scenes.offset
    count = await count_eligible(db_session, head, first_seq, last_seq, enough=enough)
    enough = max(ENOUGH_MESSAGES, scenes.offset + 1)
    unjudged = await count_eligible(db_session, head, opened.unjudged_from, last_seq, enough=enough)
    return replace(opened, count=count, unjudged=unjudged)


def is_search_due(head: Head, opened: OpenScene) -> bool:
    """Return whether a search for a break is due in a counted open scene; whether detection is on is not checked."""
    scenes = SceneSettings.of(head.settings)
    return is_look_due(
        opened.unjudged or 0,
        opened.count or 0,
        min_messages=scenes.min_messages,
        offset=scenes.offset,
        after_pause=opened.after_pause,
        cut_waits=opened.waits_since is not None,
    )


NAME = "scenes"

DETECT = "detect"
"""Search the open scene for a break."""
FOLD = "recap"
"""Fold the next scenes into the running recap."""
HIDE = "hide"
"""Hide and un-hide messages by the rules of auto-hide."""
WAIT = "wait"
"""Decide again on a forced cut when its longest wait for searches is over (`detection/forced_wait.py`)."""

DEBOUNCE_S = 1.0
"""How long folds and auto-hide wait for further changes, so that many changes at once cause only one of each."""


async def schedule_once(
    db_session: DbSession,
    head: Head,
    key: str,
    *,
    at_seq: int,
    now: datetime,
    settle_s: float,
    payload: dict[str, Any] | None = None,
    patient: bool = False,
) -> None:
    """Schedule a work item, unless it is scheduled already; a worker that is making it is not interrupted.

    An item whose last attempt failed is scheduled again. With `patient`, only an item that has failed for good is
    scheduled again; any other keeps the time of its retry.

    A scheduled search or fold does not have to change: it reads its source when it runs, and schedules the next one if
    more is left to do.
    """
    work = await find_scheduled(db_session, head, NAME, key)
    if work is None or work.failed_at is not None or (work.error is not None and not patient):
        await schedule(db_session, head, NAME, [work_queue.NewWork(key, at_seq, payload)], now=now, settle_s=settle_s)


async def schedule_hide(db_session: DbSession, head: Head, *, now: datetime) -> None:
    """Schedule auto-hide for all scenes; if changes follow each other within a second, it runs once for all of them."""
    await schedule(db_session, head, NAME, [work_queue.NewWork(HIDE, head.anchor_seq)], now=now, settle_s=DEBOUNCE_S)


def begin(head: Head) -> None:
    """Record on the line's row that the line has data of scenes; most handlers skip a line without this record."""
    head.cursors.setdefault(NAME, OpenScene().to_json())


def hides(head: Head) -> bool:
    """Return whether auto-hide is on in this chat."""
    scenes = SceneSettings.of(head.settings)
    return scenes.enabled and scenes.auto_hide is not None and scenes.auto_hide >= 0
