"""Commands on scenes: list and read them, set and remove breaks, search for a break, edit, regenerate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.models import ChatLine
from app.chats.scheduling import get_scheduled, schedule, unschedule
from app.chats.service import get_line
from app.kit import work_queue
from app.kit.db import DbSession, defer
from app.kit.errors import Invalid
from app.kit.tokens import count_tokens
from app.kit.wire import MAX_SEQ
from app.messages.range_reads import summarise_ranges
from app.messages.reads import list_not_deleted
from app.scenes import change_queries, queries
from app.scenes.errors import BreakNotFound, SceneEdited, SceneNotFound
from app.scenes.folding import reconcile_fold_work, rehash_steps
from app.scenes.lifecycle import close_at, drop_stale_title, lift
from app.scenes.models import Scene
from app.scenes.recap import shown_version
from app.scenes.schedule import DEBOUNCE_S, DETECT, NAME, begin, hides, schedule_hide

MOST_COUNTED = 1_000
"""Only this many messages of a scene are counted, so that a list does not take longer for longer scenes."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A scene as it is listed.

    Attributes:
        scene: Its row; None for the open scene.
        work: Its work item, if any.
        number: Its number, from 1.
        first_seq: Where it begins.
        messages: How many messages it has; None if there are too many to count for a list.
        first_message_id: The id of the first of them.
        last_message_id: The id of the last of them.
        in_prompt: Whether the running recap in contexts includes it.

    """

    scene: Scene | None
    work: work_queue.WorkItem | None
    number: int
    first_seq: int
    messages: int | None
    first_message_id: str | None
    last_message_id: str | None
    in_prompt: bool


async def list_scenes(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None, after_seq: int, limit: int
) -> list[Listed]:
    """Return the scenes that end after `after_seq`, in story order; the open scene is the last, if it has a message.

    Raises ChatNotFound, LineNotFound.
    """
    chat = await get_line(db_session, ref, line)
    return await _list(db_session, chat, after_seq=after_seq, limit=limit)


async def get_scene(db_session: DbSession, ref: ChatRef, scene_id: UUID, *, line: UUID | None = None) -> Listed:
    """Return one closed scene. Raises ChatNotFound, LineNotFound, SceneNotFound."""
    chat = await get_line(db_session, ref, line)
    found = await queries.find_scene(db_session, ref.key, chat.line_id, scene_id)
    if found is None:
        raise _unknown(scene_id)
    return (await _with_messages(db_session, chat, [found], None))[0]


async def set_break(db_session: DbSession, ref: ChatRef, seq: int, *, now: datetime) -> tuple[bool, list[Listed]]:
    """Set a break on a message; an existing break stays as it is.

    Returns whether the break is new, and the scenes on both sides of it. If no message follows the break, only the
    scene before it is returned. Raises ChatNotFound, or Invalid if there is no message with this seq or it was deleted.
    """
    head = await lock_head(db_session, ref)
    await _check_seq(db_session, head, seq)
    scene = await _find_ending(db_session, head, seq)
    is_new = scene is None
    if scene is None:
        scene = await close_at(db_session, head, seq, by="person", now=now, settle_s=DEBOUNCE_S)
        defer(db_session, LayerChanged(head, NAME))
        await db_session.run_deferred()
    chat = await get_line(db_session, ref, None)
    return is_new, await _list(db_session, chat, after_seq=scene.first_seq - 1, limit=2)


async def lift_break(db_session: DbSession, ref: ChatRef, seq: int, *, now: datetime) -> None:
    """Remove the break on a message; the recap is kept in case the break is set again.

    Raises ChatNotFound, BreakNotFound.
    """
    head = await lock_head(db_session, ref)
    scene = await _find_ending(db_session, head, seq)
    if scene is None:
        raise BreakNotFound(f"There is no break on the message with seq {seq}.")
    await lift(db_session, head, scene, now=now, settle_s=DEBOUNCE_S)
    defer(db_session, LayerChanged(head, NAME))


async def ask_for_look(db_session: DbSession, ref: ChatRef, *, now: datetime) -> work_queue.WorkItem:
    """Schedule a search for a break now, even if detection is off. Raises ChatNotFound."""
    head = await lock_head(db_session, ref)
    begin(head)
    first_seq = await queries.find_last_break(db_session, head) + 1
    item = work_queue.NewWork(DETECT, min(first_seq, max(head.head_seq, 1)), {"asked": True})
    await schedule(db_session, head, NAME, [item], now=now, settle_s=0)
    defer(db_session, LayerChanged(head, NAME))
    return await get_scheduled(db_session, head, NAME, DETECT)


async def edit_scene(
    db_session: DbSession, ref: ChatRef, scene_id: UUID, given: Mapping[str, Any], *, now: datetime
) -> None:
    """Replace the title or the recap of a scene by those in `given`; a title of None removes the title.

    Raises ChatNotFound, SceneNotFound.
    """
    head, scene = await _lock_scene(db_session, ref, scene_id)
    if "title" in given:
        scene.title, scene.titled = given["title"], given["title"] is not None
    if "recap" in given:
        recap = given["recap"]
        drop_stale_title(scene)  # the new recap counts as made from the present messages
        was_made = scene.status != "pending" and not scene.is_written
        scene.recap, scene.tokens, scene.status, scene.origin = recap, count_tokens(recap), "ready", "person"
        scene.edited, scene.source_hash, scene.generated_at = scene.edited or was_made, scene.current_hash, now
        await unschedule(db_session, head, NAME, [str(scene_id)])
    await rehash_steps(db_session, head, scene.first_seq, scene.last_seq)
    await reconcile_fold_work(db_session, head, now=now)
    if hides(head):  # the running recap does not cover the scene until the new text is folded in
        await schedule_hide(db_session, head, now=now)
    defer(db_session, LayerChanged(head, NAME))


async def regenerate_scene(
    db_session: DbSession,
    ref: ChatRef,
    scene_id: UUID,
    *,
    instruction: str | None,
    replace_edited: bool,
    now: datetime,
) -> UUID:
    """Schedule a new recap of a scene and return the work item's id; a title that a person wrote stays.

    Raises ChatNotFound, SceneNotFound, and SceneEdited if a person wrote the recap, unless `replace_edited`.
    """
    head, scene = await _lock_scene(db_session, ref, scene_id)
    if scene.is_written and not replace_edited:
        raise SceneEdited("A person wrote this scene's recap; send replace_edited: true to replace it.")
    # The item gets a payload even without an instruction. An item without a payload would be cancelled if the scene's
    # messages were edited and the edit undone, because the present recap is then valid again.
    item = work_queue.NewWork(str(scene_id), scene.first_seq, {"instruction": instruction})
    await schedule(db_session, head, NAME, [item], now=now, settle_s=0)
    defer(db_session, LayerChanged(head, NAME))
    return (await get_scheduled(db_session, head, NAME, str(scene_id))).work_id


async def _lock_scene(db_session: DbSession, ref: ChatRef, scene_id: UUID) -> tuple[Head, Scene]:
    head = await lock_head(db_session, ref)
    found = await queries.find_scene(db_session, *head.line, scene_id)
    if found is None:
        raise _unknown(scene_id)
    return head, found[0]


async def _find_ending(db_session: DbSession, head: Head, seq: int) -> Scene | None:
    """Return the closed scene whose last message has this seq, or None."""
    scene = await change_queries.find_holding(db_session, head, seq)
    return scene if scene is not None and scene.last_seq == seq else None


async def _check_seq(db_session: DbSession, head: Head, seq: int) -> None:
    if seq > head.head_seq:
        message = f"must be at most the newest seq, {head.head_seq}" if head.head_seq else "the chat has no messages"
    elif not await list_not_deleted(db_session, *head.line, [(seq, seq)]):
        message = "is the seq of a deleted message; must be that of an existing message"
    else:
        return
    raise Invalid(f"seq: {message}", errors=[{"loc": ["path", "seq"], "msg": message}])


async def _list(db_session: DbSession, chat: ChatLine, *, after_seq: int, limit: int) -> list[Listed]:
    rows = await queries.list_page(db_session, chat.chat_key, chat.line_id, after_seq=after_seq, limit=limit)
    open_after = None
    if len(rows) < limit:
        newest = await queries.find_newest(db_session, chat.chat_key, chat.line_id)
        open_after = (newest.number, newest.last_seq) if newest else (0, 0)
    return await _with_messages(db_session, chat, rows, open_after)


async def _with_messages(
    db_session: DbSession,
    chat: ChatLine,
    rows: Sequence[tuple[Scene, work_queue.WorkItem | None]],
    open_after: tuple[int, int] | None,
) -> list[Listed]:
    """Return the scenes of `rows` with the number and ids of their messages, and the open scene if it has messages.

    `open_after` is (number, last_seq) of the last closed scene, (0, 0) if none; None leaves out the open scene.
    """
    ranges = [(scene.first_seq, scene.last_seq) for scene, _ in rows]
    if open_after is not None:
        ranges.append((open_after[1] + 1, MAX_SEQ))
    found = await summarise_ranges(db_session, chat.chat_key, chat.line_id, ranges, most=MOST_COUNTED) if ranges else {}
    included_seq = _find_included(chat)

    def listed_of(first_seq: int, number: int, scene: Scene | None, work: work_queue.WorkItem | None) -> Listed:
        in_prompt = scene is not None and scene.status == "ready" and scene.last_seq <= included_seq
        return Listed(scene, work, number, first_seq, *found[first_seq], in_prompt)

    listed = [listed_of(scene.first_seq, scene.number, scene, work) for scene, work in rows]
    if open_after is not None and found[open_after[1] + 1].first_message_id is not None:
        listed.append(listed_of(open_after[1] + 1, open_after[0] + 1, None, None))
    return listed


def _find_included(chat: ChatLine) -> int:
    """Return the last seq that the running recap in contexts includes; 0 if contexts have none."""
    last_seq: int = chat.context_cache.get(NAME, {}).get("last_seq", 0)
    return 0 if shown_version(chat) is None else last_seq


def _unknown(scene_id: UUID) -> SceneNotFound:
    return SceneNotFound(f"There is no closed scene {str(scene_id)!r} in this chat.")
