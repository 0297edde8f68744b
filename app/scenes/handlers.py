"""Handles appends, coverage, edges and the context cache of scenes. `changes.py` handles messages that change.

An *edge* is a seq at which the history may begin after a cut; with the edges of scenes, a scene ends just before it. A
*gap* is a range of messages that are neither sent nor covered by the running recap.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import orjson

from app.chats.coverage import Coverage
from app.chats.eligibility import Filters, is_sent
from app.chats.events import MessagesAppended
from app.chats.head import Head
from app.chats.heads import find_cache, read_head, update_cache
from app.chats.ranges import join_ranges
from app.chats.scheduling import find_scheduled
from app.kit.db import DbSession
from app.messages.range_reads import has_message_after
from app.narratives import service as narratives
from app.scenes import queries
from app.scenes.detection.forced_wait import end_wait
from app.scenes.folding import RECAP, pass_over_failed, read_recap_state, reconcile_fold_work
from app.scenes.hide_job import count_old
from app.scenes.open_scene import OpenScene
from app.scenes.schedule import (
    DETECT,
    FOLD,
    NAME,
    count_open_scene,
    hides,
    is_search_due,
    schedule_hide,
    schedule_once,
)
from app.scenes.segment import count_tokens_shown
from app.scenes.settings import SCENE_EDGES, SceneSettings


async def on_append(db_session: DbSession, event: MessagesAppended) -> None:
    """Count the messages of the open scene, and schedule a search for a break once the scene is long enough."""
    head = event.head
    scenes = SceneSettings.of(head.settings)
    if not scenes.enabled:
        if NAME in head.cursors:
            head.cursors[NAME] = OpenScene.from_json(head.cursors[NAME]).uncounted().to_json()
        return
    former = OpenScene.from_json(head.cursors.get(NAME))
    opened = await _count(db_session, event, former)
    if former.hide_in and not opened.hide_in and hides(head):
        await schedule_hide(db_session, head, now=event.now)
    head.cursors[NAME] = opened.to_json()
    await end_wait(db_session, head)
    first_seq = opened.first_seq or 1
    was_empty = event.former_head_seq < first_seq or former.count is None  # an uncounted scene may be empty
    if first_seq > 1 and was_empty:  # the open scene now counts among the newest scenes
        if hides(head):
            await schedule_hide(db_session, head, now=event.now)
        if head.settings.history.edges == SCENE_EDGES:
            head.cut_waits = False  # there may be a new edge, so the cut of a full history is decided on again
        await refresh_cache(db_session, head)
    has_answer = any(message.role == "assistant" and message.kind is None for message in event.fresh)
    if scenes.detect and has_answer and is_search_due(head, opened):
        at_seq = opened.unjudged_from
        await schedule_once(
            db_session, head, DETECT, at_seq=at_seq, now=event.now, settle_s=event.settle_s, patient=True
        )


async def request_coverage(db_session: DbSession, head: Head, until_seq: int, *, now: datetime) -> bool:  # noqa: ARG001
    """Schedule a fold of the scenes that the running recap does not cover; return True.

    The recaps of these scenes were scheduled when the scenes were closed. A fold that is already scheduled keeps its
    time, and a fold that has failed for good is not scheduled again here.
    """
    is_on = SceneSettings.of(head.settings).enabled and NAME in head.cursors
    if is_on and not await find_scheduled(db_session, head, NAME, FOLD):
        await reconcile_fold_work(db_session, head, now=now, settle_s=0)
    return True


async def covered_through(db_session: DbSession, head: Head, from_seq: int, until_seq: int) -> int | None:  # noqa: ARG001
    """Return the last seq that the running recap in contexts covers; None if scenes are off."""
    if not SceneSettings.of(head.settings).enabled:
        return None
    return (await read_recap_state(db_session, head)).covered_seq if NAME in head.cursors else 0


async def list_edges(db_session: DbSession, head: Head, from_seq: int) -> Sequence[int]:
    """Return the edges: the seq after each break, beginning with the last break before `from_seq`.

    Edges are left out if a cut there would leave fewer than `history.keep_scenes` scenes, the open one counted.
    """
    has_scenes = SceneSettings.of(head.settings).enabled and NAME in head.cursors
    if head.settings.history.edges != SCENE_EDGES or not has_scenes:
        return ()
    breaks = await queries.list_breaks(db_session, head, from_seq)
    if not breaks:
        return ()
    has_open = await has_message_after(db_session, *head.line, breaks[-1])
    old = count_old(len(breaks), has_open=has_open, keep=head.settings.history.keep_scenes)
    return [last_seq + 1 for last_seq in breaks[:old]]


async def refresh_cache(db_session: DbSession, head: Head) -> None:
    """Store on the line's row the version of the running recap for contexts, its gaps and the edges."""
    if NAME not in head.cursors:
        return
    recap_state = await read_recap_state(db_session, head)
    shown: dict[str, Any] = {}
    if recap_state.shown:
        version = await narratives.read_version(db_session, head.line, RECAP, recap_state.shown.version)
        shown = {
            "version": version.version,
            "text": version.text,
            "tokens": count_tokens_shown(version.text),
            "last_seq": version.last_unit,
            "stale": recap_state.chain.is_stale(version.version),
        }
    if SceneSettings.of(head.settings).enabled:
        await pass_over_failed(db_session, head, recap_state)
        missing = await queries.list_gaps(db_session, head, recap_state.covered_seq, recap_state.limit_seq)
        if missing:
            shown["gaps"] = join_ranges(missing)
    edges = [edge for edge in await list_edges(db_session, head, head.anchor_seq) if edge >= head.anchor_seq]
    if edges:
        shown["edges"] = edges
    await update_cache(db_session, *head.line, NAME, shown or None)


async def list_coverage(
    db_session: DbSession, chat_key: UUID, line_id: UUID, first_seq: int, last_seq: int
) -> Sequence[Coverage]:
    """Return for each closed scene of a range how the running recap covers it."""
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
            continue  # scenes are off, so it will not be covered
        if state == "made" and not is_shown:
            state = "pending"  # its recap is made, but not yet folded into the running recap in contexts
        version = str(shown["version"]) if state == "made" else None
        filters = Filters.from_json(orjson.loads(row["filters"]))
        covers.append(Coverage(row["first_seq"], row["last_seq"], "recap", version, state, filters))
    return covers


async def _count(db_session: DbSession, event: MessagesAppended, opened: OpenScene) -> OpenScene:
    """Return the `opened` scene with the new messages counted."""
    head = event.head
    hide_in = max(opened.hide_in - sum(map(is_sent, event.fresh)), 0)
    opened = replace(opened, hide_in=hide_in, after_pause=opened.after_pause or event.cold)
    if opened.first_seq is None:
        # A line without messages has no scenes, so the query is skipped.
        last_break = await queries.find_last_break(db_session, head) if event.former_head_seq else 0
        opened = opened.begun_at(last_break + 1)
    if event.former_head_seq < (opened.first_seq or 1):
        opened = replace(opened, count=0, unjudged=0)
    if opened.count is not None and opened.unjudged is not None:
        return opened.with_more(event.fresh, head.filters)
    return await count_open_scene(db_session, head, opened)
