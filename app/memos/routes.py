"""The HTTP routes of the memo book."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Response

from app.chats.chat_lock import ChatRef
from app.chats.deps import Line, ReadingChat, WritingChat
from app.chats.service import get_line
from app.chats.tags import tag_of
from app.kit.auth import KeyedRoute
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.etags import TAGGED, KnownTags, is_known, not_modified, tagged
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, make_page
from app.kit.scopes import read_scopes
from app.kit.wire import OrjsonResponse
from app.kit.work_queue import WorkItem
from app.layers.derived import list_refusals
from app.memos import book
from app.memos.backfill import backfill
from app.memos.models import Memo
from app.memos.schemas import (
    Backfill,
    BackfilledOut,
    BackfillingOut,
    MemoIn,
    MemoOut,
    MemoPatch,
    Regenerate,
    RegeneratingMemo,
)
from app.memos.segment import source_of

MemoId = Annotated[UUID, Path(description="The memo's id.")]

router = APIRouter(prefix="/v1/chats/{chat_id}/memos", tags=["memo book"], route_class=KeyedRoute)


@router.get("", response_model=Page[MemoOut], responses=TAGGED)
async def list_memos(
    ref: ReadingChat,
    db_session: Db,
    known: KnownTags,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List the memo book in story order."""
    after = decode_cursor(cursor, int, int) if cursor else None
    chat = await get_line(db_session, ref, line)
    scopes = await read_scopes(db_session.raw, ref.tenant, chat.user_key)
    memos, sources = await book.list_book(
        db_session, chat, after=(after[0], after[1]) if after else None, limit=limit + 1
    )
    tag = tag_of(ref.key, chat.line_id, chat.revision, scopes, "memos", limit, after, _attempts(memos))
    if is_known(known, tag):
        return not_modified(tag)
    items = [_memo_out(memo, work, source_of(memo.memo_id) in sources) for memo, work in memos[:limit]]
    return tagged(make_page(items, [(memo.sort_key, memo.number) for memo, _ in memos]), tag)


@router.get("/{memo_id}", response_model=MemoOut, responses=TAGGED)
async def get_memo(ref: ReadingChat, memo_id: MemoId, db_session: Db, known: KnownTags, line: Line = None) -> Response:
    """Return a memo."""
    chat = await get_line(db_session, ref, line)
    scopes = await read_scopes(db_session.raw, ref.tenant, chat.user_key)
    memo, work, in_prompt = await book.get_memo(db_session, chat, memo_id)
    tag = tag_of(ref.key, chat.line_id, chat.revision, scopes, "memo", memo_id, _attempts([(memo, work)]))
    return not_modified(tag) if is_known(known, tag) else tagged(_memo_out(memo, work, in_prompt), tag)


@router.post("", status_code=201, response_model=MemoOut)
async def write_memo(ref: WritingChat, memo: MemoIn, db_session: Db, clock: Now) -> Response:
    """Write a memo by hand. It covers no messages and is in the book at once."""
    memo_id = await book.write_person_memo(db_session, ref, text=memo.text, after_seq=memo.after_seq, now=clock())
    return OrjsonResponse(await _changed(db_session, ref, memo_id), status_code=201)


@router.post("/backfill", status_code=202, response_model=BackfillingOut, responses={200: {"model": BackfilledOut}})
async def backfill_memos(ref: WritingChat, db_session: Db, clock: Now, wanted: Backfill | None = None) -> Response:
    """Make the memos of messages that were said while memos were off. Returns 200 if none is missing."""
    wanted = wanted or Backfill()
    batches, work_id = await backfill(
        db_session, ref, first_seq=wanted.first_seq, last_seq=wanted.last_seq, now=clock()
    )
    answer: dict[str, Any] = {
        "created": len(batches),
        "first_seq": batches[0].first_seq if batches else None,
        "last_seq": batches[-1].last_seq if batches else None,
    }
    if work_id is None:
        return OrjsonResponse(answer)
    return OrjsonResponse(answer | {"work_id": work_id}, status_code=202)


@router.patch("/{memo_id}", response_model=MemoOut)
async def edit_memo(ref: WritingChat, memo_id: MemoId, patch: MemoPatch, db_session: Db) -> Response:
    """Edit or pin a memo."""
    await book.edit_memo(db_session, ref, memo_id, patch.given())
    return OrjsonResponse(await _changed(db_session, ref, memo_id))


@router.delete("/{memo_id}", status_code=204)
async def delete_memo(ref: WritingChat, memo_id: MemoId, db_session: Db, clock: Now) -> None:
    """Delete a memo."""
    await book.delete_memo(db_session, ref, memo_id, now=clock())


@router.post("/{memo_id}/regenerate", status_code=202, response_model=RegeneratingMemo)
async def regenerate_memo(
    ref: WritingChat, memo_id: MemoId, db_session: Db, clock: Now, wish: Regenerate | None = None
) -> Response:
    """Regenerate a memo in the background, even a deleted one."""
    wish = wish or Regenerate()
    work_id = await book.regenerate_memo(
        db_session,
        ref,
        memo_id,
        instruction=wish.instruction,
        replace_edited=wish.replace_edited,
        now=clock(),
    )
    return OrjsonResponse(await _changed(db_session, ref, memo_id) | {"work_id": work_id}, status_code=202)


async def _changed(db_session: DbSession, ref: ChatRef, memo_id: UUID) -> dict[str, Any]:
    """Return the memo as this transaction leaves it, after the deferred update of the window has run."""
    await db_session.run_deferred()
    return _memo_out(*await book.get_memo(db_session, await get_line(db_session, ref, None), memo_id))


def _attempts(memos: Sequence[tuple[Memo, WorkItem | None]]) -> list[int]:
    """Return the work items' attempts for the ETag. A new attempt does not change the chat's revision."""
    return [work.attempts for _, work in memos if work is not None]


def _memo_out(memo: Memo, work: WorkItem | None, in_prompt: bool) -> dict[str, Any]:
    failed = memo.status == "pending" and work is not None and work.failed_at is not None
    return {
        "id": memo.memo_id,
        "number": memo.number,
        "first_seq": memo.first_seq,
        "last_seq": memo.last_seq,
        "after_seq": memo.sort_key // 2 if memo.first_seq is None else None,
        "first_message_id": memo.first_message_id,
        "status": "failed" if failed else memo.status,
        "stale": memo.status != "pending" and memo.source_hash != memo.current_hash,
        "origin": memo.origin,
        "highlights": memo.highlights,
        "text": memo.text,
        "in_prompt": in_prompt,
        "pinned": memo.pinned,
        "edited": memo.edited,
        "error": work.error if work else None,
        "attempts": work.attempts if work else memo.attempts,
        "model": memo.model,
        "prompt_version": memo.prompt_version,
        "refusals": list_refusals(memo.origin, memo.refusals),
        "created_at": memo.created_at,
    }
