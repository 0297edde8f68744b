"""HTTP routes of lines: checkpoints, restoring, switching, forks."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Response

from app.chats import service
from app.chats.chat_lock import ChatRef
from app.chats.deps import ReadingChat, WritingChat
from app.chats.models import CURRENT
from app.chats.presenters import present_chats
from app.chats.schemas import ChatOut
from app.kit.auth import KeyedRoute, Writer
from app.kit.db import DbSession
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, encode_cursor
from app.kit.wire import OrjsonResponse
from app.lines import service as lines
from app.lines.limits import Limits
from app.lines.queries import LineRow
from app.lines.schemas import CheckpointIn, CheckpointName, CheckpointOut, CurrentLine, ForkIn, LineOut

router = APIRouter(prefix="/v1/chats/{chat_id}", tags=["lines"], route_class=KeyedRoute)

NamePath = Annotated[CheckpointName, Path(description="The checkpoint's name.", examples=["before the storm"])]
LinePath = Annotated[UUID, Path(description="The line's id.")]


@router.post("/checkpoints", status_code=201, response_model=CheckpointOut)
async def make_checkpoint(
    ref: WritingChat, wanted: CheckpointIn, db_session: Db, clock: Now, limits: Limits
) -> Response:
    """Create a checkpoint of the current line.

    A chat has at most `MEMOBOOK_MAX_CHECKPOINTS` (200); beyond that, the answer is a 409 `too_many_checkpoints`.
    """
    checkpoint = await lines.make_checkpoint(db_session, ref, wanted.name, limits=limits, now=clock())
    return OrjsonResponse(_checkpoint_out(checkpoint), status_code=201)


@router.get("/checkpoints", response_model=Page[CheckpointOut])
async def list_checkpoints(
    ref: ReadingChat, db_session: Db, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """List the chat's checkpoints, newest first."""
    found, next_cursor = await _list(db_session, ref, limit, cursor, checkpoints=True)
    return OrjsonResponse({"items": [_checkpoint_out(line) for line in found], "next_cursor": next_cursor})


@router.get("/checkpoints/{name}", response_model=CheckpointOut)
async def get_checkpoint(ref: ReadingChat, name: NamePath, db_session: Db) -> Response:
    """Get a checkpoint."""
    await service.get_chat(db_session, ref)
    return OrjsonResponse(_checkpoint_out(await lines.get_checkpoint(db_session, ref, name)))


@router.post("/checkpoints/{name}/restore", status_code=201, response_model=CurrentLine)
async def restore_checkpoint(ref: WritingChat, name: NamePath, db_session: Db, clock: Now, limits: Limits) -> Response:
    """Continue from a checkpoint on a new line.

    Messages, memories and settings are restored; the chat's user and `metadata` do not change. The context is the same
    as at the checkpoint, byte for byte, except for what holds on all lines and has changed since: facts, core blocks
    and memories that a person wrote, and what other chats share with this one. The former line is kept. A chat has at
    most `MEMOBOOK_MAX_LINES` (200) lines besides its checkpoints; beyond that, the answer is a 409 `too_many_lines`.
    """
    line = await lines.restore(db_session, ref, name, limits=limits, now=clock())
    return OrjsonResponse({"line": line}, status_code=201)


@router.delete("/checkpoints/{name}", status_code=204)
async def delete_checkpoint(ref: WritingChat, name: NamePath, db_session: Db) -> None:
    """Delete a checkpoint. Lines that were restored from it are kept."""
    await lines.delete_checkpoint(db_session, ref, name)


@router.get("/lines", response_model=Page[LineOut])
async def list_lines(ref: ReadingChat, db_session: Db, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Response:
    """List the chat's lines, newest first, without checkpoints."""
    found, next_cursor = await _list(db_session, ref, limit, cursor, checkpoints=False)
    return OrjsonResponse({"items": [_line_out(line) for line in found], "next_cursor": next_cursor})


@router.get("/lines/{line}", response_model=LineOut)
async def get_line(ref: ReadingChat, line: LinePath, db_session: Db) -> Response:
    """Get a line that is not a checkpoint."""
    await service.get_chat(db_session, ref)
    return OrjsonResponse(_line_out(await lines.get_line(db_session, ref, line)))


@router.delete("/lines/{line}", status_code=204)
async def delete_line(ref: WritingChat, line: LinePath, db_session: Db) -> None:
    """Delete a line for good. Lines that were copied from it are kept.

    The current line (409 `line_is_current`) and checkpoints (409 `line_is_checkpoint`) cannot be deleted here.
    """
    await lines.delete_line(db_session, ref, line)


@router.post("/lines/{line}/switch", response_model=CurrentLine)
async def switch_line(ref: WritingChat, line: LinePath, db_session: Db, clock: Now) -> Response:
    """Make another line current, in its last state."""
    await lines.switch(db_session, ref, line, now=clock())
    return OrjsonResponse({"line": line})


@router.post("/fork", status_code=201, response_model=ChatOut)
async def fork_chat(ref: WritingChat, wanted: ForkIn, caller: Writer, db_session: Db, clock: Now) -> Response:
    """Create a new chat as a copy of this one, whole or up to a message.

    The copy has the messages of the current line up to that message, what was made from these messages alone, and
    everything that a person wrote into the facts, blocks and memories of the chat. For example, a copy that ends in the
    middle of a batch has no memo of this batch until the batch is full again. The copy and the original are
    independent.
    """
    target = ChatRef.of(caller, wanted.chat_id)
    await lines.fork(db_session, ref, target, wanted.at_seq, now=clock())
    await db_session.run_deferred()  # deletes what extends beyond the end of the copy, so that the counts are right
    (out,) = await present_chats(db_session, [await service.get_chat(db_session, target)])
    return OrjsonResponse(out, status_code=201)


async def _list(
    db_session: DbSession, ref: ChatRef, limit: int, cursor: str | None, *, checkpoints: bool
) -> tuple[Sequence[LineRow], str | None]:
    """Return a page of lines and the cursor of the next page. Raises ChatNotFound."""
    before = decode_cursor(cursor, datetime, UUID) if cursor else None
    await service.get_chat(db_session, ref)
    found = await lines.list_lines(
        db_session,
        ref,
        checkpoints=checkpoints,
        limit=limit + 1,
        before=(before[0], before[1]) if before else None,
    )
    last = found[limit - 1] if len(found) > limit else None
    return found[:limit], encode_cursor(last.line_created_at, last.line_id) if last else None


def _checkpoint_out(line: LineRow) -> dict[str, Any]:
    return {
        "name": line.checkpoint,
        "line": line.line_id,
        "head_seq": line.head_seq,
        "messages": line.message_count,
        "created_at": line.line_created_at,
    }


def _line_out(line: LineRow) -> dict[str, Any]:
    return {
        "line": line.line_id,
        "current": line.line_status == CURRENT,
        "parent": line.parent_line_id,
        "head_seq": line.head_seq,
        "messages": line.message_count,
        "created_at": line.line_created_at,
        "last_active_at": line.last_active_at,
    }
