"""The HTTP routes of diaries."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from app.chats.deps import Line, ReadingChat, WritingChat
from app.diary import book
from app.diary.regeneration import regenerate_folded
from app.diary.schemas import (
    EntryIn,
    EntryOut,
    EntryPatch,
    FoldedOut,
    RegenerateFolded,
    RegeneratingFolded,
    SharedEntryOut,
)
from app.diary.shared.merging import Elsewhere
from app.kit.auth import KeyedRoute
from app.kit.deps import Db, Now
from app.kit.paging import DEFAULT_LIMIT, Cursor, Limit, Page, decode_cursor, make_page
from app.kit.wire import Name, OrjsonResponse
from app.layers.derived import list_refusals

EntryId = Annotated[UUID, Path(description="The entry's id.")]
OfCharacter = Annotated[Name | None, Query(description="The character whose diary it is.")]

router = APIRouter(prefix="/v1/chats/{chat_id}/diary", tags=["narratives"], route_class=KeyedRoute)


@router.get("", response_model=Page[EntryOut])
async def list_diary(
    ref: ReadingChat,
    db_session: Db,
    character: OfCharacter = None,
    line: Line = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """List diary entries in story order. By default, those of all characters."""
    after = decode_cursor(cursor, int, int) if cursor else None
    listed = await book.list_entries(
        db_session,
        ref,
        line=line,
        character=character,
        after=(after[0], after[1]) if after else None,
        limit=limit + 1,
    )
    keys = [(entry.row.at_seq, entry.row.number) for entry in listed]
    return OrjsonResponse(make_page([_entry_out(entry) for entry in listed[:limit]], keys))


@router.get("/folded", response_model=FoldedOut)
async def get_folded_diary(
    ref: ReadingChat, db_session: Db, character: OfCharacter = None, line: Line = None
) -> Response:
    """Return the text into which the oldest entries of a diary are folded. The list of entries still has them.

    A new version enters the prompt at the next cut, or at once if the version in the prompt has become invalid.
    """
    return OrjsonResponse(_folded_out(await book.read_folded(db_session, ref, line=line, character=character)))


@router.post("/folded/regenerate", status_code=202, response_model=RegeneratingFolded)
async def regenerate_folded_diary(
    ref: WritingChat, db_session: Db, clock: Now, wish: RegenerateFolded | None = None
) -> Response:
    """Make the newest fold of a diary again in the background.

    The result replaces the former one, in the prompt too.
    """
    character = wish.character if wish else None
    work_id = await regenerate_folded(db_session, ref, character=character, now=clock())
    await db_session.run_deferred()
    folded = await book.read_folded(db_session, ref, line=None, character=character)
    return OrjsonResponse(_folded_out(folded) | {"work_id": work_id}, status_code=202)


@router.get("/shared", response_model=Page[SharedEntryOut])
async def list_shared_diary(
    ref: ReadingChat, db_session: Db, character: OfCharacter = None, line: Line = None
) -> Response:
    """List diary entries from the user's other chats.

    These are the newest entries of the chat's characters, and older ones that contexts contain. They are sorted by
    time, on one page. The list is empty unless `diary.scope` is `character`.
    """
    listed = await book.list_shared(db_session, ref, line=line, character=character)
    return OrjsonResponse({"items": [_shared_out(*one) for one in listed], "next_cursor": None})


@router.post("", status_code=201, response_model=EntryOut)
async def write_diary_entry(ref: WritingChat, body: EntryIn, db_session: Db, clock: Now) -> Response:
    """Write an entry into a character's diary."""
    entry_id = await book.write_entry(db_session, ref, body.content, character=body.character, now=clock())
    await db_session.run_deferred()
    return OrjsonResponse(_entry_out(await book.get_entry(db_session, ref, entry_id)), status_code=201)


@router.get("/{entry_id}", response_model=EntryOut)
async def get_diary_entry(ref: ReadingChat, entry_id: EntryId, db_session: Db, line: Line = None) -> Response:
    """Return a diary entry."""
    return OrjsonResponse(_entry_out(await book.get_entry(db_session, ref, entry_id, line=line)))


@router.patch("/{entry_id}", response_model=EntryOut)
async def edit_diary_entry(
    ref: WritingChat, entry_id: EntryId, body: EntryPatch, db_session: Db, clock: Now
) -> Response:
    """Edit an entry, or keep it even if the reply that it belongs to changes.

    A fold that covers the entry is made again.
    """
    await book.edit_entry(db_session, ref, entry_id, body.given(), now=clock())
    await db_session.run_deferred()
    return OrjsonResponse(_entry_out(await book.get_entry(db_session, ref, entry_id)))


@router.delete("/{entry_id}", status_code=204)
async def delete_diary_entry(ref: WritingChat, entry_id: EntryId, db_session: Db, clock: Now) -> None:
    """Delete an entry. A fold that covers the entry is made again without it."""
    await book.delete_entry(db_session, ref, entry_id, now=clock())


def _entry_out(listed: book.Listed) -> dict[str, Any]:
    entry = listed.row
    return {
        "id": entry.entry_id,
        "character": entry.character or None,
        "content": entry.content,
        "at_seq": entry.at_seq,
        "message_id": listed.message_id,
        "origin": entry.origin,
        "edited": entry.edited,
        "kept": entry.kept,
        "stale": entry.source_hash != entry.current_hash,
        "first_seq": entry.first_seq,
        "last_seq": entry.last_seq,
        "in_prompt": listed.in_prompt,
        "model": entry.model,
        "prompt_version": entry.prompt_version,
        "dated_at": entry.dated_at,
        "created_at": entry.created_at,
    }


def _shared_out(character: str, one: Elsewhere, in_prompt: bool) -> dict[str, Any]:
    entry = one.entry
    return {
        "id": entry.entry_id,
        "chat_id": one.chat_id,
        "character": character,
        "content": entry.content,
        "origin": one.origin,
        "in_prompt": in_prompt,
        "dated_at": entry.dated_at,
        "created_at": one.created_at,
    }


def _folded_out(folded: book.Folded) -> dict[str, Any]:
    version = folded.version
    return {
        "character": folded.character or None,
        "version": version.version if version else None,
        "text": version.text if version else "",
        "entries": folded.entries,
        "first_at": folded.first_at,
        "last_at": folded.last_at,
        "in_prompt": folded.in_prompt,
        "origin": version.origin if version else None,
        "model": version.model if version else None,
        "prompt_version": version.prompt_version if version else None,
        "refusals": list_refusals(version.origin, version.refusals) if version else [],
        "created_at": version.created_at if version else None,
    }
