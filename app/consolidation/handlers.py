"""Decides which ranges of messages are due to be read, when messages arrive and when sessions end.

`changes.py` handles the other events. While the layer is on, the line's cursor contains the open range as `period`: the
range that new messages extend. It begins after the end of the last closed range. The cursor also contains `dated_at`,
the date of the last range that became due, because each range must have a later date than the one before it. One append
can schedule ranges in several steps: `on_append`, then `on_session` for each session that ends.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from app.chats.events import MessagesAppended, SessionBroken
from app.chats.head import Head
from app.chats.scheduling import schedule
from app.consolidation import queries
from app.consolidation.ranges import BEFORE_FORCED_CUT_MESSAGES, MOST_MESSAGES, RANGE, close, date_ranges, join, key_of
from app.consolidation.settings import ConsolidationSettings
from app.kit.db import DbSession
from app.kit.work_queue import NewWork
from app.layers.turns import OpenPeriod, Period, count_turns, form_periods
from app.messages.reads import awaited_reply, list_not_deleted

NAME = "consolidation"


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Schedule the ranges that end with the new messages, at a pause before them, or because a forced cut is near."""
    head = event.head
    settings = ConsolidationSettings.of(head.settings)
    if not settings.enabled:
        if cursor := head.cursors.get(NAME):
            cursor.pop("period", None)
        return
    cursor = head.cursors.setdefault(NAME, {})
    filling = find_open(cursor) or OpenPeriod(event.former_head_seq + 1, awaits_reply=event.former_awaits_reply)
    ended: list[Period] = []
    if event.cold:
        ended, filling = close(filling, event.former_head_seq)
    after = [message for message in event.fresh if message.seq >= filling.first_seq]
    formed, filling = form_periods(filling, after, settings.every_turns, most_seqs=MOST_MESSAGES)
    ended += formed
    if _is_cut_soon(event, filling):
        formed, filling = close(filling, head.head_seq)
        ended += formed
    cursor["period"] = filling.to_json()
    await _schedule(db_session, head, ended, now=event.now, settle_s=event.settle_s)


async def on_session(db_session: DbSession, event: SessionBroken) -> None:
    """Schedule the open range, which ends with the session."""
    head = event.head
    cursor = head.cursors.get(NAME, {})
    filling = find_open(cursor)
    if filling is None or not ConsolidationSettings.of(head.settings).enabled:
        return
    ended, filling = close(filling, event.last_seq)
    if not ended:
        return
    cursor["period"] = (await count_again(db_session, head, filling.first_seq, head.head_seq)).to_json()
    await _schedule(db_session, head, ended, now=event.now, settle_s=event.settle_s)


async def covered_through(db_session: DbSession, head: Head, from_seq: int, until_seq: int) -> int | None:  # noqa: ARG001
    """Return the last seq before the first range that is due or open; None if the layer is off or has no range yet."""
    filling = find_open(head.cursors.get(NAME, {}))
    if filling is None or not ConsolidationSettings.of(head.settings).enabled:
        return None
    unsettled = await queries.find_first_unsettled(db_session, head.line, NAME, RANGE, from_seq)
    return (filling.first_seq if unsettled is None else unsettled) - 1


async def count_again(db_session: DbSession, head: Head, first_seq: int, until_seq: int) -> OpenPeriod:
    """Return the open range that begins at `first_seq`, with the turns of its messages up to `until_seq`."""
    messages = await list_not_deleted(db_session, *head.line, [(first_seq, until_seq)])
    return count_turns(first_seq, messages, awaits_reply=await awaited_reply(db_session, *head.line, first_seq))


def find_open(cursor: dict[str, Any]) -> OpenPeriod | None:
    """Return the open range that a line's cursor contains."""
    stored = cursor.get("period")
    return OpenPeriod.from_json(stored) if stored else None


def _is_cut_soon(event: MessagesAppended, filling: OpenPeriod) -> bool:
    """Whether to end the open range now, because a forced cut of the history is near.

    A forced cut does not wait for memories. It is near while the history has at least `max_messages` -
    BEFORE_FORCED_CUT_MESSAGES messages. The open range ends with the append that brings the cut near. While the cut
    stays near, as it always does if `max_messages` is small, the open range ends when it spans more than
    `keep_messages` seqs: the cut could then remove the first messages of the range.
    """
    head, settings = event.head, event.head.settings
    close_to_it = settings.max_messages - BEFORE_FORCED_CUT_MESSAGES
    if head.history_messages < close_to_it:
        return False
    is_long = head.head_seq - filling.first_seq >= settings.history.keep_messages
    return is_long or event.former_history_messages < close_to_it


async def _schedule(
    db_session: DbSession, head: Head, ended: Sequence[Period], *, now: datetime, settle_s: float
) -> None:
    if not ended:
        return
    cursor = head.cursors[NAME]
    former = cursor.get("dated_at")
    dues = date_ranges(join(ended), now, after=datetime.fromisoformat(former) if former else None)
    cursor["dated_at"] = dues[-1].learnt_at.isoformat()
    items = [NewWork(key_of(due.first_seq), due.first_seq, due.to_payload()) for due in dues]
    await schedule(db_session, head, NAME, items, now=now, settle_s=settle_s)
