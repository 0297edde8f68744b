"""The operations on the memo book: list, read, write, edit, delete and regenerate memos."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from app.chats.chat_lock import ChatRef, lock_head
from app.chats.events import LayerChanged
from app.chats.head import Head
from app.chats.models import ChatLine
from app.chats.scheduling import get_scheduled, schedule, unschedule
from app.kit import work_queue
from app.kit.db import DbSession, defer
from app.kit.errors import Invalid
from app.kit.ids import uuid7
from app.layers.in_prompt import list_sources
from app.memos import queries
from app.memos.errors import MemoEdited, MemoNotFound, NothingToSummarise
from app.memos.highlights import highlights_from_text, text_values
from app.memos.models import NAME, Memo
from app.memos.segment import contribute, source_of


async def list_book(
    db_session: DbSession, chat: ChatLine, *, after: tuple[int, int] | None, limit: int
) -> tuple[Sequence[tuple[Memo, work_queue.WorkItem | None]], frozenset[str]]:
    """Return a page of the book in story order, each memo with its work item.

    Also return the sources (`source_of`) of all memos that are in the prompt.
    """
    book = await queries.list_book(db_session, chat.chat_key, chat.line_id, layer=NAME, after=after, limit=limit)
    return book, list_sources(contribute, chat, NAME)


async def write_person_memo(
    db_session: DbSession, ref: ChatRef, *, text: str, after_seq: int | None, now: datetime
) -> UUID:
    """Insert a memo that covers no messages and return its id. The memo is ready at once; no model is called.

    Raises ChatNotFound, and Invalid if `after_seq` is after the newest message.
    """
    head = await lock_head(db_session, ref)
    at_seq = head.head_seq if after_seq is None else after_seq
    if at_seq > head.head_seq:
        raise Invalid(
            f"The chat ends at seq {head.head_seq}.",
            errors=[{"loc": ["body", "after_seq"], "msg": f"must be at most {head.head_seq}"}],
        )
    head.memo_count += 1
    head.memo_number += 1
    memo = Memo(
        chat_key=head.chat_key,
        line_id=head.line_id,
        memo_id=uuid7(),
        number=head.memo_number,
        sort_key=2 * at_seq + 1,
        status="ready",
        origin="person",
        created_at=now,
        generated_at=now,
        **text_values(highlights_from_text(text), text),
    )
    db_session.add(memo)
    await db_session.flush()
    defer(db_session, LayerChanged(head, NAME))
    return memo.memo_id


async def edit_memo(db_session: DbSession, ref: ChatRef, memo_id: UUID, given: Mapping[str, Any]) -> None:
    """Change the fields of a memo that `given` contains: text, pinned. Raises ChatNotFound, MemoNotFound."""
    head, memo = await _lock_memo(db_session, ref, memo_id)
    values: dict[str, Any] = {"pinned": bool(given["pinned"])} if "pinned" in given else {}
    if "text" in given:
        text = given["text"]
        values |= text_values(highlights_from_text(text), text) | {
            "status": "ready",
            "origin": "person",
            "edited": memo.edited or (memo.status != "pending" and memo.origin != "person"),
            "source_hash": memo.current_hash,
        }
        await unschedule(db_session, head, NAME, [str(memo_id)])
    await queries.update_memo(db_session, *head.line, memo_id, values)
    defer(db_session, LayerChanged(head, NAME))


async def delete_memo(db_session: DbSession, ref: ChatRef, memo_id: UUID, *, now: datetime) -> None:
    """Soft-delete a memo; only `regenerate_memo` restores it. Raises ChatNotFound, MemoNotFound."""
    head, _ = await _lock_memo(db_session, ref, memo_id)
    await unschedule(db_session, head, NAME, [str(memo_id)])
    await queries.update_memo(db_session, *head.line, memo_id, {"deleted_at": now})
    head.memo_count -= 1
    defer(db_session, LayerChanged(head, NAME))


async def regenerate_memo(
    db_session: DbSession,
    ref: ChatRef,
    memo_id: UUID,
    *,
    instruction: str | None,
    replace_edited: bool,
    now: datetime,
) -> UUID:
    """Schedule a new text for a memo, also for a soft-deleted one, and return the id of the work item.

    Raises ChatNotFound, MemoNotFound, and NothingToSummarise for a memo that covers no messages. Raises MemoEdited for
    a memo that a person edited, unless `replace_edited` is true or the memo is soft-deleted.
    """
    head, memo = await _lock_memo(db_session, ref, memo_id, deleted=True)
    if memo.first_seq is None:
        raise NothingToSummarise("A person wrote this memo; it covers no messages that could be summarised.")
    if memo.origin == "person" and memo.deleted_at is None and not replace_edited:
        raise MemoEdited("A person edited this memo; send replace_edited: true to replace the edited text.")
    if memo.deleted_at is not None:
        head.memo_count += 1
        values = text_values((), "") | {
            "deleted_at": None,
            "status": "pending",
            "origin": "model",
            "edited": False,
            "source_hash": None,
        }
        await queries.update_memo(db_session, *head.line, memo_id, values)
    # The payload is set even without an instruction: work with a payload is not cancelled when an edit is undone.
    item = work_queue.NewWork(key=str(memo_id), at_seq=memo.first_seq, payload={"instruction": instruction})
    await schedule(db_session, head, NAME, [item], now=now, settle_s=0)
    defer(db_session, LayerChanged(head, NAME))
    return (await get_scheduled(db_session, head, NAME, str(memo_id))).work_id


async def get_memo(
    db_session: DbSession, chat: ChatLine, memo_id: UUID
) -> tuple[Memo, work_queue.WorkItem | None, bool]:
    """Return a memo with its work item, and whether it is in the prompt. Raises MemoNotFound."""
    found = await queries.find_memo(db_session, chat.chat_key, chat.line_id, memo_id, layer=NAME)
    if found is None or found[0].deleted_at is not None:
        raise _unknown(memo_id)
    return *found, source_of(memo_id) in list_sources(contribute, chat, NAME)


async def _lock_memo(db_session: DbSession, ref: ChatRef, memo_id: UUID, *, deleted: bool = False) -> tuple[Head, Memo]:
    head = await lock_head(db_session, ref)
    found = await queries.find_memo(db_session, *head.line, memo_id, layer=NAME)
    if found is None or (found[0].deleted_at is not None and not deleted):
        raise _unknown(memo_id)
    return head, found[0]


def _unknown(memo_id: UUID) -> MemoNotFound:
    return MemoNotFound(f"There is no memo {str(memo_id)!r} in this chat's book.")
