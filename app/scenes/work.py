"""What of scenes is made in the background, and how it is made due.

Beside a row for each recap that is to be made, by its scene's id, there are three things that a line has one of.
"""

from datetime import datetime
from typing import Any

from app.chats.scheduling import find_scheduled, schedule
from app.chats.service import Head
from app.kit import work_queue
from app.kit.db import DbSession
from app.scenes.opened import OpenScene
from app.scenes.settings import SceneSettings

NAME = "scenes"

DETECT = "detect"
"""Look for a break in the open scene."""
FOLD = "recap"
"""Fold what is behind it into the running recap."""
HIDE = "hide"
"""Hide what auto-hide hides, and show what it does no longer."""

DEBOUNCE_S = 1.0
"""So long what follows from a change waits for the next one: changes in bulk are one fold and one refresh."""


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
    """Make one thing due, unless it is already: who is making it is not disturbed.

    What has failed begins anew, unless `patient`: then it waits for its next try like any other.

    What it is made from is read when it is made, and what has come since makes it due again then.
    """
    work = await find_scheduled(db_session, head, NAME, key)
    if work is None or work.failed_at is not None or (work.error is not None and not patient):
        await schedule(db_session, head, NAME, [work_queue.NewWork(key, at_seq, payload)], now=now, settle_s=settle_s)


async def schedule_hide(db_session: DbSession, head: Head, *, now: datetime) -> None:
    """Have auto-hide look at all scenes anew, once for all changes within a second."""
    await schedule(db_session, head, NAME, [work_queue.NewWork(HIDE, head.anchor_seq)], now=now, settle_s=DEBOUNCE_S)


def begin(head: Head) -> None:
    """Have the chat's row know that there is something of scenes on the line; without it nobody looks."""
    head.cursors.setdefault(NAME, OpenScene().to_json())


def hides(head: Head) -> bool:
    """Whether auto-hide hides anything in this chat."""
    scenes = SceneSettings.of(head.settings)
    return scenes.enabled and scenes.auto_hide is not None and scenes.auto_hide >= 0
