"""The verbs of scenes: what people read, where they set breaks and lift them, what they write and have made again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.chats.due_work import delete_due, make_due
from app.chats.service import ChatRef, Head, get_chat, get_line, list_living, lock_head
from app.kit import due
from app.kit.db import DbSession, defer
from app.kit.errors import Invalid
from app.kit.tokens import count_tokens
from app.kit.wire import MAX_SEQ
from app.scenes import change_queries, queries
from app.scenes.closing import close_at, lift
from app.scenes.errors import SceneEdited, SceneNotFound
from app.scenes.folding import judge_fold, rehash_steps
from app.scenes.models import Scene
from app.scenes.work import DEBOUNCE_S, DETECT, NAME, begin, get_due, hides, make_hide_due


@dataclass(frozen=True, slots=True)
class Listed:
    """A scene as a list tells of it.

    Attributes:
        scene: Its row; None for the open one.
        work: Its due work, if any.
        number: Its number, from 1.
        first_seq: Where it begins.
        messages: How many messages it has; None if they are too many to be counted in a list.
        first_message_id: The first of them.
        last_message_id: The last of them.

    """

    scene: Scene | None
    work: due.Work | None
    number: int
    first_seq: int
    messages: int | None
    first_message_id: str | None
    last_message_id: str | None


async def list_scenes(
    db_session: DbSession, ref: ChatRef, *, line: UUID | None, after_seq: int, limit: int
) -> list[Listed]:
    """Scenes in story order behind a break; the open one is the last, if it has a message. Raises ChatNotFound."""
    chat = await get_line(db_session, ref, line)
    return await _list(db_session, ref.key, chat.line_id, after_seq=after_seq, limit=limit)


async def get_scene(db_session: DbSession, ref: ChatRef, scene_id: UUID) -> Listed:
    """One closed scene. Raises ChatNotFound, SceneNotFound."""
    chat = await get_chat(db_session, ref)
    found = await queries.find_scene(db_session, ref.key, chat.line_id, scene_id)
    if found is None:
        raise _unknown(scene_id)
    return (await _with_messages(db_session, ref.key, chat.line_id, [found], None))[0]


async def toggle_break(db_session: DbSession, ref: ChatRef, seq: int, *, now: datetime) -> tuple[bool, list[Listed]]:
    """Set a break on a message, or lift the one that is there.

    Returns whether it is set now, and the scenes that have become others. Raises ChatNotFound, or Invalid where no
    message stands.
    """
    head = await lock_head(db_session, ref)
    await _check_seq(db_session, head, seq)
    there = await change_queries.find_holding(db_session, head, seq)
    if there is not None and there.last_seq == seq:
        first_seq, limit = there.first_seq, 1
        await lift(db_session, head, there, now=now, settle_s=DEBOUNCE_S)
    else:
        scene = await close_at(db_session, head, seq, by="person", now=now, settle_s=DEBOUNCE_S)
        first_seq, limit = scene.first_seq, 2
    defer(db_session, "layer_settled", head)
    await db_session.run_deferred()
    return limit > 1, await _list(db_session, *head.line, after_seq=first_seq - 1, limit=limit)


async def ask_for_look(db_session: DbSession, ref: ChatRef, *, now: datetime) -> due.Work:
    """Have a break looked for now, also where that is switched off. Raises ChatNotFound."""
    head = await lock_head(db_session, ref)
    begin(head)
    first_seq = await queries.find_last_break(db_session, head) + 1
    item = due.Due(DETECT, min(first_seq, max(head.head_seq, 1)), {"asked": True})
    await make_due(db_session, head, NAME, [item], now=now, settle_s=0)
    defer(db_session, "layer_settled", head)
    return await get_due(db_session, head, DETECT)


async def edit_scene(
    db_session: DbSession, ref: ChatRef, scene_id: UUID, *, title: str | None, recap: str | None, now: datetime
) -> None:
    """Give a scene a person's title or recap. Raises ChatNotFound, SceneNotFound."""
    head, scene = await _lock_scene(db_session, ref, scene_id)
    if title is not None:
        scene.title, scene.titled = title, True
    if recap is not None:
        scene.recap, scene.tokens, scene.status, scene.origin = recap, count_tokens(recap), "ready", "person"
        scene.edited, scene.source_hash, scene.made_at = True, scene.current_hash, now
        await delete_due(db_session, head, NAME, [str(scene_id)])
    await rehash_steps(db_session, head, scene.first_seq, scene.last_seq)
    await judge_fold(db_session, head, now=now)
    if hides(head):  # until it is folded in, the recap that is shown does not tell of it
        await make_hide_due(db_session, head, now=now)
    defer(db_session, "layer_settled", head)


async def regenerate_scene(
    db_session: DbSession,
    ref: ChatRef,
    scene_id: UUID,
    *,
    instruction: str | None,
    replace_edited: bool,
    now: datetime,
) -> None:
    """Have a scene's recap made again now; a title that a person gave stays.

    Raises ChatNotFound, SceneNotFound, SceneEdited for a person's recap unless `replace_edited`.
    """
    head, scene = await _lock_scene(db_session, ref, scene_id)
    if scene.edited and not replace_edited:
        raise SceneEdited("A person wrote this scene's recap; send replace_edited: true to have it written anew.")
    # A payload also where there is no instruction: what a person asks for is not forgotten when an edit is undone.
    item = due.Due(str(scene_id), scene.first_seq, {"instruction": instruction})
    await make_due(db_session, head, NAME, [item], now=now, settle_s=0)
    defer(db_session, "layer_settled", head)


async def _lock_scene(db_session: DbSession, ref: ChatRef, scene_id: UUID) -> tuple[Head, Scene]:
    head = await lock_head(db_session, ref)
    found = await queries.find_scene(db_session, *head.line, scene_id)
    if found is None:
        raise _unknown(scene_id)
    return head, found[0]


async def _check_seq(db_session: DbSession, head: Head, seq: int) -> None:
    if seq > head.head_seq:
        message = f"is beyond the newest message, which is {head.head_seq}" if head.head_seq else "the chat is empty"
    elif not await list_living(db_session, *head.line, [(seq, seq)]):
        message = "is the seq of a deleted message; give that of one that is there"
    else:
        return
    raise Invalid(f"seq: {message}", errors=[{"loc": ["body", "seq"], "msg": message}])


async def _list(db_session: DbSession, chat_key: UUID, line_id: UUID, *, after_seq: int, limit: int) -> list[Listed]:
    rows = await queries.list_page(db_session, chat_key, line_id, after_seq=after_seq, limit=limit)
    open_after = None
    if len(rows) < limit:
        newest = await queries.find_newest(db_session, chat_key, line_id)
        open_after = (newest.number, newest.last_seq) if newest else (0, 0)
    return await _with_messages(db_session, chat_key, line_id, rows, open_after)


async def _with_messages(
    db_session: DbSession,
    chat_key: UUID,
    line_id: UUID,
    rows: Sequence[tuple[Scene, due.Work | None]],
    open_after: tuple[int, int] | None,
) -> list[Listed]:
    """The scenes of `rows` with their messages, and the open one if it has any.

    `open_after` are the number and the last seq of the scene before that; None leaves it out.
    """
    ranges = [(scene.first_seq, scene.last_seq) for scene, _ in rows]
    if open_after is not None:
        ranges.append((open_after[1] + 1, MAX_SEQ))
    found = await queries.list_messages_of(db_session, chat_key, line_id, ranges) if ranges else {}

    def told(first_seq: int, number: int, scene: Scene | None, work: due.Work | None) -> Listed:
        messages: dict[str, Any] = found[first_seq]
        ids = (messages["first_message_id"], messages["last_message_id"])
        return Listed(scene, work, number, first_seq, messages["messages"], *ids)

    listed = [told(scene.first_seq, scene.number, scene, work) for scene, work in rows]
    if open_after is not None and found[open_after[1] + 1]["first_message_id"] is not None:
        listed.append(told(open_after[1] + 1, open_after[0] + 1, None, None))
    return listed


def _unknown(scene_id: UUID) -> SceneNotFound:
    return SceneNotFound(f"There is no closed scene {str(scene_id)!r} in this chat.")
