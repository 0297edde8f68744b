"""Sets and removes breaks, and updates what depends on them: numbers, ranges, hashes, recaps, auto-hide.

Scenes have no gaps between them. A break inside a scene splits it: the first part becomes a new scene, the second part
keeps the row with a later beginning. Removing a break merges its scene into the next one, closed or open.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from app.chats.eligibility import Filters
from app.chats.events import AnchorMoved
from app.chats.hashes import range_hash
from app.chats.head import Head
from app.chats.scheduling import unschedule
from app.kit.db import DbSession
from app.kit.ids import uuid7
from app.kit.tokens import count_tokens
from app.layers import derived
from app.layers.derived import DerivedRow, Rehashed, reschedule
from app.messages.range_reads import find_last_not_deleted
from app.scenes import change_queries, queries
from app.scenes.folding import reconcile_fold_work, rehash_steps
from app.scenes.models import Scene
from app.scenes.open_scene import OpenScene
from app.scenes.schedule import NAME, hides, schedule_hide
from app.scenes.settings import SceneSettings


def hand_on(there: Scene, here: Scene) -> None:
    """Copy the title and the recap that a person wrote from the scene `there` to the scene `here`.

    If a person wrote the recap of `here` too, the copied one is appended to it. Otherwise it replaces the recap of
    `here`, and the `source_hash` is copied too. A title that a person gave `here` stays.
    """
    if there.titled and not here.titled:
        here.title, here.titled = there.title, True
    if not there.is_written:
        return
    if here.is_written:
        here.recap = f"{here.recap}\n\n{there.recap}"
    else:
        here.recap, here.source_hash = there.recap, there.source_hash
    here.tokens = count_tokens(here.recap)
    here.status, here.origin, here.edited = there.status, there.origin, here.edited or there.edited


def drop_stale_title(scene: Scene) -> None:
    """Remove a title that the service wrote, if the scene's messages have changed since the recap was made."""
    if not scene.titled and scene.source_hash != scene.current_hash:
        scene.title = None


By = Literal["person", "model", "time", "cut"]


async def close_at(
    db_session: DbSession,
    head: Head,
    last_seq: int,
    *,
    by: By,
    reason: str | None = None,
    now: datetime,
    settle_s: float,
) -> Scene:
    """Set a break on a message that is not deleted, and return the scene that it ends. An existing break is kept."""
    after = await change_queries.find_holding(db_session, head, last_seq)
    if after is not None and after.last_seq == last_seq:
        return after
    first_seq = after.first_seq if after else await queries.find_last_break(db_session, head) + 1
    number = after.number if after else await _next_number(db_session, head, first_seq)
    scene = await _take_up(db_session, head, first_seq, last_seq)
    if scene is None:
        scene = new_scene(head, now)
        db_session.add(scene)
    scene.number, scene.first_seq, scene.last_seq = number, first_seq, last_seq
    scene.lifted_at, scene.truncated = None, False
    scene.closed_by, scene.reason = by, reason
    if after is not None:
        after.first_seq = last_seq + 1
        await change_queries.renumber_after(db_session, head, last_seq, 1)
    changed = [scene] if after is None else [scene, after]
    await follow(
        db_session, head, changed, from_seq=first_seq, until_seq=changed[-1].last_seq, now=now, settle_s=settle_s
    )
    return scene


async def lift(db_session: DbSession, head: Head, scene: Scene, *, now: datetime, settle_s: float) -> Scene | None:
    """Remove the break of a scene, but keep its recap; return the closed scene that has its messages now, or None."""
    after = await change_queries.find_holding(db_session, head, scene.last_seq + 1)
    scene.lifted_at = now
    await unschedule(db_session, head, NAME, [str(scene.scene_id)])
    await change_queries.renumber_after(db_session, head, scene.last_seq, -1)
    if after is not None:
        after.first_seq = scene.first_seq
    changed, until_seq = ([], scene.last_seq) if after is None else ([after], after.last_seq)
    await follow(db_session, head, changed, from_seq=scene.first_seq, until_seq=until_seq, now=now, settle_s=settle_s)
    return after


async def follow(
    db_session: DbSession,
    head: Head,
    changed: Sequence[Scene],
    *,
    from_seq: int,
    until_seq: int,
    now: datetime,
    settle_s: float,
) -> None:
    """Update what depends on scenes whose range or content has changed; have the open scene's messages counted again.

    Args:
        db_session: Open unit of work.
        head: The head, locked; its cursor is changed.
        changed: The scenes that have changed.
        from_seq: Where the first of them begins, or began.
        until_seq: Where the last of them ends, or ended.
        now: The service's time.
        settle_s: How many seconds their recaps wait for further changes.

    """
    await db_session.flush()
    rehashed = await rehash(db_session, head, changed)
    opened = OpenScene.from_json(head.cursors.get(NAME))
    head.cursors[NAME] = opened.begun_at(await queries.find_last_break(db_session, head) + 1).to_json()
    enabled = SceneSettings.of(head.settings).enabled
    awaited = await reschedule(db_session, head, NAME, rehashed, enabled=enabled, now=now, settle_s=settle_s)
    await rehash_steps(db_session, head, from_seq, until_seq)
    # The running recap is folded in story order, so a fold cannot go beyond the first scene whose recap was scheduled
    # here (`awaited`). Until these recaps are made, a fold can only be needed for a scene that no version covers yet
    # (`only_news`): a version that a person has gone back to stays as it is.
    await reconcile_fold_work(db_session, head, now=now, only_news=awaited)
    if hides(head):
        await schedule_hide(db_session, head, now=now)


async def rehash(db_session: DbSession, head: Head, scenes: Sequence[Scene]) -> list[Rehashed[Scene]]:
    """Update the current hashes of `scenes`; remove the stale titles of those whose recap a person wrote."""
    rehashed = await derived.rehash(db_session, head, [_derived(scene) for scene in scenes])
    for one in rehashed:
        scene = one.row.of
        scene.current_hash = one.current_hash
        if scene.is_written:  # any other recap is made again with its title
            drop_stale_title(scene)
    await db_session.flush()
    return rehashed


def _derived(scene: Scene) -> DerivedRow[Scene]:
    return DerivedRow(
        of=scene,
        key=str(scene.scene_id),
        first_seq=scene.first_seq,
        last_seq=scene.last_seq,
        filters=Filters.from_json(scene.filters),
        source_hash=scene.source_hash,
        current_hash=scene.current_hash,
        keeps_text=scene.is_written,
    )


async def on_cut(db_session: DbSession, event: AnchorMoved) -> None:
    """Close the open scene at a forced cut inside it, so that its recap is made."""
    head = event.head
    if not SceneSettings.of(head.settings).enabled or event.reason != "forced":
        return
    open_seq = OpenScene.from_json(head.cursors.get(NAME)).first_seq
    if open_seq is None:
        open_seq = await queries.find_last_break(db_session, head) + 1
    last_seq = await find_last_not_deleted(db_session, *head.line, open_seq, head.anchor_seq - 1)
    if last_seq is not None:
        reason = "the history was cut before a break was found"
        await close_at(db_session, head, last_seq, by="cut", reason=reason, now=event.now, settle_s=event.settle_s)


def new_scene(head: Head, now: datetime) -> Scene:
    """Return a scene without a recap; the caller sets its number, its range and `closed_by`."""
    return Scene(
        chat_key=head.chat_key,
        line_id=head.line_id,
        scene_id=uuid7(),
        status="pending",
        origin="model",
        recap="",
        tokens=0,
        filters=head.filters.to_json(),
        current_hash=range_hash(()),
        edited=False,
        titled=False,
        attempts=0,
        truncated=False,
        created_at=now,
    )


async def _take_up(db_session: DbSession, head: Head, first_seq: int, last_seq: int) -> Scene | None:
    """Return the row of a removed break, for reuse by a new break on `last_seq`, or None.

    The first of these that exists is used:

    1. The scene whose break on `last_seq` was removed, if a person wrote its recap and it is not `truncated`.
    2. The `truncated` scenes that end in the range, merged into the first.
    3. The scene whose break on `last_seq` was removed, regardless of who wrote its recap.
    """
    lifted = await change_queries.find_lifted(db_session, head, last_seq)
    if lifted is not None and lifted.is_written and not lifted.truncated:
        return lifted
    gone = await change_queries.list_truncated(db_session, head, first_seq, last_seq)
    if not gone:
        return lifted
    taken, *others = gone
    for other in others:
        hand_on(other, taken)
        await db_session.delete(other)
    return taken


async def _next_number(db_session: DbSession, head: Head, first_seq: int) -> int:
    """Return the number of a new scene after all closed ones."""
    former = await change_queries.find_holding(db_session, head, first_seq - 1) if first_seq > 1 else None
    return former.number + 1 if former else 1
