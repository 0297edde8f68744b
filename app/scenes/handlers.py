"""What scenes do at an append and at a cut; what they do when messages change is in `changes.py`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import orjson

from app.chats.coverage import Coverage
from app.chats.eligibility import Filters
from app.chats.events import MessagesAppended
from app.chats.ranges import join_ranges
from app.chats.scheduling import find_scheduled
from app.chats.service import Head, find_cache, read_head, update_cache
from app.kit.db import DbSession
from app.narratives import service as narratives
from app.scenes import queries
from app.scenes.counting import count_eligible
from app.scenes.folding import RECAP, judge_fold, pass_over_failed, read_standing
from app.scenes.hiding import keep_newest
from app.scenes.opened import OpenScene
from app.scenes.segment import count_told
from app.scenes.settings import OWN_EDGES, SceneSettings
from app.scenes.work import DETECT, FOLD, NAME, hides, schedule_hide, schedule_once


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Count the open scene, and schedule a look for a break once it may hold one."""
    head = event.head
    scenes = SceneSettings.of(head.settings)
    if not scenes.enabled:
        if NAME in head.cursors:
            head.cursors[NAME] = OpenScene.from_json(head.cursors[NAME]).uncounted().to_json()
            if head.settings.history.edges == OWN_EDGES:  # a message behind the last break makes that an edge
                await refresh_cache(db_session, head)
        return
    former = OpenScene.from_json(head.cursors.get(NAME))
    opened = await _count(db_session, event, former)
    head.cursors[NAME] = opened.to_json()
    first_seq, count = opened.first_seq or 1, opened.count or 0
    was_empty = event.former_head_seq < first_seq or former.count is None  # or all that it held may be deleted
    if first_seq > 1 and was_empty:  # there is one scene more than before
        if hides(head):
            await schedule_hide(db_session, head, now=event.now)
        if head.settings.history.edges == OWN_EDGES:
            head.cut_waits = False  # there is an edge more: a full cut is judged anew
        await refresh_cache(db_session, head)
    has_answer = any(message.role == "assistant" and message.kind is None for message in event.fresh)
    if scenes.detect and has_answer and count >= scenes.min_messages + scenes.offset:
        await schedule_once(
            db_session, head, DETECT, at_seq=first_seq, now=event.now, settle_s=event.settle_s, patient=True
        )


async def request_coverage(db_session: DbSession, head: Head, until_seq: int, *, now: datetime) -> bool:  # noqa: ARG001
    """Have the recap fold what it is behind with; the recaps of scenes are due since these were closed.

    A fold that is due keeps its next try, and one that has failed for good waits for something new.
    """
    is_on = SceneSettings.of(head.settings).enabled and NAME in head.cursors
    if is_on and not await find_scheduled(db_session, head, NAME, FOLD):
        await judge_fold(db_session, head, now=now, settle_s=0)
    return True


async def covered_through(db_session: DbSession, head: Head, from_seq: int, until_seq: int) -> int | None:  # noqa: ARG001
    """Up to which seq the recap that is shown tells of every scene; None if scenes are off."""
    if not SceneSettings.of(head.settings).enabled:
        return None
    return (await read_standing(db_session, head)).covered_seq if NAME in head.cursors else 0


async def list_edges(db_session: DbSession, head: Head, from_seq: int) -> Sequence[int]:
    """The seqs after breaks, but for those inside the newest scenes, which a cut leaves."""
    if head.settings.history.edges != OWN_EDGES or NAME not in head.cursors:
        return ()
    breaks = await queries.list_breaks(db_session, head, from_seq)
    if not breaks:
        return ()
    has_open = await queries.has_message_after(db_session, head, breaks[-1])
    old = keep_newest(len(breaks), has_open=has_open, keep=head.settings.history.keep_scenes)
    return [last_seq + 1 for last_seq in breaks[:old]]


async def refresh_cache(db_session: DbSession, head: Head) -> None:
    """Write on the chat's row which version of the running recap is shown, what is missing in it, and the edges."""
    if NAME not in head.cursors:
        return
    standing = await read_standing(db_session, head)
    shown: dict[str, Any] = {}
    if standing.shown:
        version = await narratives.read_version(db_session, head.line, RECAP, standing.shown.version)
        shown = {
            "version": version.version,
            "text": version.text,
            "tokens": count_told(version.text),
            "last_seq": version.last_place,
            "stale": standing.chain.is_stale(version.version),
        }
    if SceneSettings.of(head.settings).enabled:
        await pass_over_failed(db_session, head, standing)
        missing = await queries.list_gaps(db_session, head, standing.covered_seq, standing.limit_seq)
        if missing:
            shown["gaps"] = join_ranges(missing)
    edges = [edge for edge in await list_edges(db_session, head, head.anchor_seq) if edge >= head.anchor_seq]
    if edges:
        shown["edges"] = edges
    await update_cache(db_session, *head.line, NAME, shown or None)


async def list_coverage(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> Sequence[Coverage]:
    """The closed scenes of a range of messages, and what of the running recap stands for each."""
    head = await read_head(db_session, chat_key, line_id)
    if head is None or NAME not in head.cursors:
        return ()
    rows = await queries.list_overlapping(db_session, chat_key, line_id, first_seq, last_seq)
    shown = await find_cache(db_session, chat_key, line_id, NAME) if rows else {}
    covers = []
    for row in rows:
        state: Literal["made", "empty", "pending", "failed"] = row["state"]
        is_shown = state == "made" and row["last_seq"] <= shown.get("last_seq", 0)
        if not is_shown and not SceneSettings.of(head.settings).enabled:
            continue  # nobody is going to tell of it
        if state == "made" and not is_shown:
            state = "pending"  # its recap is there, but not yet part of the one that is shown
        version = str(shown["version"]) if state == "made" else None
        filters = Filters.from_json(orjson.loads(row["filters"]))
        covers.append(Coverage(row["first_seq"], row["last_seq"], "recap", version, state, filters))
    return covers


async def _count(db_session: DbSession, event: MessagesAppended, opened: OpenScene) -> OpenScene:
    """The `opened` scene with the new messages counted in."""
    head = event.head
    if opened.first_seq is None:
        # A line that begins has no scenes, and so nothing has to be asked for them.
        last_break = await queries.find_last_break(db_session, head) if event.former_head_seq else 0
        opened = OpenScene(last_break + 1)
    if event.former_head_seq < (opened.first_seq or 1):
        opened = OpenScene(opened.first_seq, 0)
    if opened.count is not None:
        return opened.with_more(event.fresh, head.filters)
    scenes = SceneSettings.of(head.settings)
    enough = scenes.min_messages + scenes.offset
    count = await count_eligible(db_session, head, opened.first_seq or 1, head.head_seq, enough=enough)
    return OpenScene(opened.first_seq, count)
