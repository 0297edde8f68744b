"""Keeps scenes consistent with messages that change.

A changed message changes the hash of its scene. Only a scene whose hash has changed becomes stale and gets a new recap,
and the running recap is rebuilt from there on. A break on a deleted message moves to the last message before it.
Messages that auto-hide hides or un-hides do not count as changed.

A message is *judged* once a search has decided whether a scene ends on it. A row of a removed break is *lifted*; if a
truncation of the line removed the scene's last message, the row is also `truncated` (`models.py`).
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from app.chats.events import LineTruncated, MessagesChanged, MessagesMoved, SettingsChanged
from app.chats.head import Head
from app.chats.scheduling import unschedule
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.layers.derived import schedule_unscheduled
from app.messages.range_reads import find_last_not_deleted
from app.narratives import service as narratives
from app.scenes import change_queries, queries
from app.scenes.detection.looks import judged_after_change
from app.scenes.folding import RECAP, reconcile_fold_work
from app.scenes.hide_job import show_again
from app.scenes.lifecycle import follow, hand_on, new_scene, rehash
from app.scenes.models import Scene
from app.scenes.open_scene import OpenScene, SceneChange, decide_change
from app.scenes.schedule import DEBOUNCE_S, NAME, hides, schedule_hide
from app.scenes.settings import SceneSettings

_Moving = tuple[int, Scene]
"""(last_seq, scene): a scene of another line, and the seq on which it ends on this line."""


async def on_change(db_session: DbSession, event: MessagesChanged) -> None:
    """Update the hashes of the scenes that contain changed messages, schedule the stale ones, and move breaks.

    Auto-hide is scheduled if it may now have to leave other messages visible than before the change, or if a person
    allows it again to hide a message. If the history or the open scene became too short, the messages that auto-hide
    may no longer hide are shown at once.
    """
    head = event.head
    if NAME not in head.cursors:
        return
    opened = OpenScene.from_json(head.cursors[NAME])
    change = decide_change(event.pairs, opened)
    may_alter_sight = event.unpinned or event.relinked
    if hides(head) and (may_alter_sight or (change is not None and (change.shrinks_open or change.alters_sight))):
        await schedule_hide(db_session, head, now=event.now)
    if change is not None:
        await _apply(db_session, event, opened, change)
    is_short = event.alters_history and head.history_messages < head.settings.history.keep_messages
    if is_short or (change is not None and change.shrinks_open):
        await show_again(db_session, head, now=event.now)


async def _apply(db_session: DbSession, event: MessagesChanged, opened: OpenScene, change: SceneChange) -> None:
    head = event.head
    if change.touches_open:
        head.cursors[NAME] = opened.rejudged(judged_after_change(opened.judged_seq, change.seqs)).to_json()
    if change.gone:
        await _move_lifted(db_session, head, change.gone)
    scenes = await change_queries.list_holding(db_session, head, change.seqs)
    if any(scene.last_seq in change.gone for scene in scenes):
        await _move_breaks(db_session, event, scenes, change.gone)
    else:
        await _follow_changed(db_session, event, scenes)


async def _follow_changed(db_session: DbSession, event: MessagesChanged, scenes: Sequence[Scene]) -> None:
    """Update the hashes of `scenes`, which are in order, and what depends on those whose hash has changed."""
    head = event.head
    changed = [one.row.of for one in await rehash(db_session, head, scenes) if one.has_changed]
    if changed:
        span = {"from_seq": changed[0].first_seq, "until_seq": changed[-1].last_seq}
        await follow(db_session, head, changed, **span, now=event.now, settle_s=event.settle_s)


async def on_settings_changed(db_session: DbSession, event: SettingsChanged) -> None:
    """Schedule what became stale while scenes were off, and apply the current settings of auto-hide."""
    head, now, settle_s = event.head, event.now, event.settle_s
    if NAME not in head.cursors:
        return
    head.cursors[NAME] = OpenScene.from_json(head.cursors[NAME]).uncounted().to_json()
    if SceneSettings.of(head.settings).enabled:
        await schedule_unscheduled(
            db_session, head, NAME, Scene.scene_id, condition=Scene.lifted_at.is_(None), now=now, settle_s=settle_s
        )
    await reconcile_fold_work(db_session, head, now=now, settle_s=settle_s, only_news=True)
    await schedule_hide(db_session, head, now=now)


async def on_truncate(db_session: DbSession, event: LineTruncated) -> None:
    """Remove the breaks from `from_seq` on; a scene that is only partly left is open again.

    A title or recap that a person wrote for one of these scenes is kept: the row stays without its break, and
    the next scene that ends on the row's `last_seq` or later takes over the text. The messages that auto-hide may no
    longer hide are shown at once.
    """
    head, from_seq = event.head, event.from_seq
    if NAME not in head.cursors:
        return
    # The last message that is left was judged together with the removed messages, so it is judged again.
    head.cursors[NAME] = OpenScene.from_json(head.cursors[NAME]).rejudged(from_seq - 2).to_json()
    reaching = await change_queries.list_reaching(db_session, head, from_seq)
    await unschedule(db_session, head, NAME, [str(scene.scene_id) for scene in reaching])
    for scene in reaching:
        await _open_again(db_session, head, scene, event)
    begins_seq = max(from_seq - 1, 1)
    await narratives.truncate(
        db_session, head.line, RECAP, from_seq, begins_seq=begins_seq, former_line=event.former_line
    )
    await follow(
        db_session, head, [], from_seq=from_seq, until_seq=head.head_seq, now=event.now, settle_s=event.settle_s
    )
    await show_again(db_session, head, now=event.now)
    await schedule_hide(db_session, head, now=event.now)


async def on_move(db_session: DbSession, event: MessagesMoved) -> None:
    """Re-create the former line's breaks that a person set, and those of scenes for which a person wrote a text.

    This line was made from the former line. Each break is on the same message on both lines. A break that was removed
    on the former line counts as removed on this one, too, so it is not detected again.
    """
    head = event.head
    if NAME not in head.cursors:
        return
    there = await change_queries.list_moving(db_session, head, event.from_line_id, event.kept_seq)
    moving = _find_ends(event, there)
    if moving:
        await _forget_clipped(db_session, event, moving)
        for last_seq, scene in moving:
            if scene.lifted_at is not None:
                db_session.add(_copy_lifted(head, scene, last_seq))
        await _close_moved(db_session, event, [one for one in moving if one[1].lifted_at is None])
    begins_seq = max(event.kept_seq, 1)
    await narratives.carry_over_edits(
        db_session, head.line, event.from_line_id, RECAP, begins_seq=begins_seq, now=event.now
    )
    await schedule_hide(db_session, head, now=event.now)


async def _move_breaks(
    db_session: DbSession, event: MessagesChanged, scenes: Sequence[Scene], gone: AbstractSet[int]
) -> None:
    """Move breaks from messages that are `gone` to the last message that is left before them.

    If no message of a scene is left, its range joins the next scene. The hash of the next scene does not change,
    because deleted messages do not count.
    """
    head = event.head
    left = [scene for scene in scenes if scene.last_seq not in gone]
    span = {"from_seq": scenes[0].first_seq, "until_seq": scenes[-1].last_seq}
    for scene in scenes:
        if scene in left:
            continue
        last_seq = await find_last_not_deleted(db_session, *head.line, scene.first_seq, scene.last_seq)
        after = await change_queries.find_holding(db_session, head, scene.last_seq + 1)
        if after is not None:
            after.first_seq = scene.first_seq if last_seq is None else last_seq + 1
        if last_seq is None:
            await _dissolve(db_session, head, scene, event.now)
        else:
            scene.last_seq = last_seq
            left.append(scene)
    left.sort(key=lambda scene: scene.last_seq)
    await follow(db_session, head, left, **span, now=event.now, settle_s=event.settle_s)


async def _move_lifted(db_session: DbSession, head: Head, gone: AbstractSet[int]) -> None:
    """Move removed breaks from messages that are `gone` to the last message that is left before them.

    This applies only to breaks of scenes with a text by a person. Each break can then be set again on the message to
    which it has moved. It does not move past the break before it.
    """
    for lifted in await change_queries.list_lifted_written(db_session, head, sorted(gone)):
        former_break = await change_queries.find_break_before(db_session, head, lifted.last_seq)
        last_seq = await find_last_not_deleted(db_session, *head.line, former_break + 1, lifted.last_seq)
        if last_seq is not None:
            lifted.first_seq, lifted.last_seq = min(lifted.first_seq, last_seq), last_seq
    await db_session.flush()


async def _open_again(db_session: DbSession, head: Head, scene: Scene, event: LineTruncated) -> None:
    """Delete a scene that reaches past the end of a truncated line.

    If it has a title or recap by a person, its row stays, lifted and `truncated`, for the next scene that ends on its
    `last_seq` or later. `last_seq` becomes the seq of the last message that is left of the scene, if there is one.
    """
    if not (scene.is_written or scene.titled):
        await db_session.delete(scene)
        return
    until_seq = event.from_seq - 1
    if scene.first_seq <= until_seq:
        left_seq = await find_last_not_deleted(db_session, *head.line, scene.first_seq, until_seq)
        scene.last_seq = left_seq or until_seq
    scene.lifted_at, scene.truncated = scene.lifted_at or event.now, True


async def _dissolve(db_session: DbSession, head: Head, scene: Scene, now: datetime) -> None:
    """Delete a scene without messages; if it has a title or recap by a person, only remove its break."""
    await unschedule(db_session, head, NAME, [str(scene.scene_id)])
    if scene.is_written or scene.titled:
        scene.lifted_at = now
    else:
        await db_session.delete(scene)
    await change_queries.renumber_after(db_session, head, scene.last_seq, -1)


def _find_ends(move: MessagesMoved, scenes: Sequence[Scene]) -> list[_Moving]:
    """Return where the `scenes` of the other line end on this one, in the order of these ends.

    A scene whose last message did not move is left out. A `truncated` scene has lost its last message. It ends on the
    last message at or before its `last_seq` that both lines have.
    """
    seqs = dict(move.seqs)
    ends = ((max(move.seq_here(one.last_seq), 1) if one.truncated else seqs.get(one.last_seq), one) for one in scenes)
    return sorted(((last_seq, one) for last_seq, one in ends if last_seq), key=lambda one: one[0])


async def _forget_clipped(db_session: DbSession, move: MessagesMoved, moving: Sequence[_Moving]) -> None:
    """Delete this line's `truncated` rows of the scenes that are now re-created from the other line.

    This line began as a truncated copy of the other one, and the truncation left these rows.
    """
    whole = {scene.scene_id for _, scene in moving}
    for left in await change_queries.list_truncated(db_session, move.head, 1, max(move.kept_seq, 1)):
        if left.scene_id in whole:
            await db_session.delete(left)


async def _close_moved(db_session: DbSession, move: MessagesMoved, moving: Sequence[_Moving]) -> None:
    """Close scenes of another line on this line, after its own closed scenes, and copy what people wrote for them."""
    if not moving:
        return
    head = move.head
    former = await queries.find_newest(db_session, *head.line)
    count, from_seq = (former.number, former.last_seq + 1) if former else (0, 1)
    closed, first_seq = [], from_seq
    for number, (last_seq, there) in enumerate(moving, start=count + 1):
        here = new_scene(head, move.now)
        here.number, here.first_seq, here.last_seq = number, first_seq, last_seq
        here.closed_by, here.reason = there.closed_by, there.reason
        hand_on(there, here)
        first_seq = last_seq + 1
        closed.append(here)
    db_session.add_all(closed)
    until_seq = closed[-1].last_seq
    await follow(db_session, head, closed, from_seq=from_seq, until_seq=until_seq, now=move.now, settle_s=DEBOUNCE_S)
    for here in closed:
        if here.is_written:
            here.source_hash = here.current_hash
    await db_session.flush()


def _copy_lifted(head: Head, there: Scene, last_seq: int) -> Scene:
    """Return a copy of a removed break of another line, on the same message and with its recap."""
    values = {column.key: getattr(there, column.key) for column in Scene.__table__.columns}
    here = {"line_id": head.line_id, "scene_id": uuid7(), "first_seq": last_seq, "last_seq": last_seq}
    return Scene(**values | here)
